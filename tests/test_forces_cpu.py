"""The cpu engine computes the law's forces, in every shape of problem that its tiles and its rounding could spoil."""

import errno
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from conftest import program, random_bodies
from numba import njit
from numba.core.compiler import CompileResult

from nbody.cli.progress import messages
from nbody.compute.compiling import announce, cache, cpu_kernels
from nbody.compute.compiling.cpu_kernels import CpuKernelCache, cpu_kernel
from nbody.errors import DeviceError
from nbody.forces.api import accelerations
from nbody.forces.direct import cpu_pairs, cpu_roots
from nbody.forces.direct.cpu import CpuEngine
from nbody.forces.layers import layered
from nbody.forces.reference import direct_sum
from nbody.integrators.solvers import kepler
from nbody.law import Gravity
from nbody.state import Outputs

LAWS = [("plummer", 0.05), ("cutoff", 0.3), ("none", 0.0)]
EPS = {"float32": 2.0**-24, "float64": 2.0**-53}
"""Half a unit in the last place: the relative error of one rounding."""

ROUNDINGS = 20
"""Of a body's acceleration, at most, relative to the sizes of its terms. A term has a dozen: five of r², which count
one and a half times, and some five of the root and the products. The sum over tiles, lanes and rows adds some fifty in
a row, which walk at random, √50 = 7, where no single term dominates. A tenth to a half of this is what is measured."""


def plummer_sphere(count, dimensions=3, seed=5):
    """Unequal masses with the density of Plummer's sphere: a dense centre, and a few bodies far out."""
    rng = np.random.default_rng(seed)
    radius = (rng.uniform(0.001, 0.999, count) ** (-2 / 3) - 1) ** -0.5
    direction = rng.standard_normal((count, dimensions))
    position = direction * (radius / np.linalg.norm(direction, axis=1))[:, None]
    return position, rng.uniform(0.5, 1.5, count) / count


def rounded(precision, *arrays):
    """The arrays as an engine of that precision keeps them, in float64: what its forces are to be compared with."""
    return [np.asarray(array, precision).astype(np.float64) for array in arrays]


def sum_of_sizes(position, mass, gravity):
    """Σ_j |term_j| for each body: what the rounding errors of its acceleration are relative to, however much of it
    cancels. The sum of the sizes of the terms' components is larger by √D at most."""
    d = position[None] - position[:, None]
    r2 = (d * d).sum(axis=2)
    outside = r2 > (0 if gravity.softening == "plummer" else gravity.length2)
    soft = r2 + (gravity.length2 if gravity.softening == "plummer" else 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(outside, mass * np.sqrt(r2) / soft**1.5, 0.0).sum(axis=1)


# All in space; in the plane, each law and each precision: a kernel takes 3 s to compile.
IN_SPACE = [(*law, 3, precision) for law in LAWS for precision in EPS]
IN_THE_PLANE = [("plummer", 0.05, 2, "float32"), ("cutoff", 0.3, 2, "float64"), ("none", 0.0, 2, "float64")]


@pytest.mark.parametrize("softening,length,dimensions,precision", IN_SPACE + IN_THE_PLANE)
def test_forces_and_potential_are_right_to_rounding(softening, length, dimensions, precision):
    # 1111: six tiles, the last one ragged, none a multiple of the vector's length
    position, mass = rounded(precision, *plummer_sphere(1111, dimensions))
    law = Gravity(dimensions=dimensions, softening=softening, length=length)
    expected, expected_phi = direct_sum(position, mass, law)
    a, phi = accelerations(
        position, mass, softening=softening, length=length, engine="cpu", precision=precision, potential=True
    )
    error = np.abs(a - expected).max(axis=1)
    assert (error <= ROUNDINGS * EPS[precision] * sum_of_sizes(position, mass, law)).all()
    assert np.median(error / np.linalg.norm(expected, axis=1)) < 3 * EPS[precision]
    # the potential's terms have half as many, and one sign: nothing cancels
    assert np.abs(phi / expected_phi - 1).max() < ROUNDINGS / 2 * EPS[precision]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("softening,length", LAWS)
def test_asking_for_the_potential_changes_no_bit_of_the_forces(softening, length, precision):
    """Else a run would go another way for having been recorded."""
    bodies = random_bodies(600)
    engine = CpuEngine(Gravity(softening=softening, length=length), precision)
    alone, together, later = (engine.load(bodies) for _ in range(3))
    engine.evaluate(alone)
    engine.evaluate(together, Outputs.POTENTIAL)
    engine.evaluate(later)
    engine.evaluate(later, Outputs.POTENTIAL)
    assert alone.acceleration.tobytes() == together.acceleration.tobytes() == later.acceleration.tobytes()
    assert together.potential.tobytes() == later.potential.tobytes()
    assert (together.potential < 0).all()


def test_errors_stay_small_at_the_size_of_the_lecture():
    """At 20480 bodies the sums are long, and the tiles the large ones."""
    position, mass = rounded("float32", *plummer_sphere(20480))
    a = accelerations(position, mass, softening="plummer", length=0.01, engine="cpu", precision="float32")
    some = np.arange(0, 20480, 331)
    d = position[None] - position[some, None]
    f = mass * ((d * d).sum(axis=2) + 0.01**2) ** -1.5
    expected = (f[:, :, None] * d).sum(axis=1)
    error = np.linalg.norm(a[some] - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(error) < 3e-7
    assert error.max() < 1e-5


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 255, 256, 257, 511, 512, 513, 769, 1025])
def test_no_number_of_bodies_is_special(count):
    bodies = random_bodies(count)
    law = Gravity(softening="plummer", length=0.1)
    expected, _ = direct_sum(bodies.position, bodies.mass, law)
    a = accelerations(bodies.position, bodies.mass, softening="plummer", length=0.1, engine="cpu")
    bound = ROUNDINGS * EPS["float64"] * sum_of_sizes(bodies.position, bodies.mass, law)
    assert (np.abs(a - expected).max(axis=1) <= bound).all()


def test_momentum_is_conserved_to_rounding():
    position, mass = rounded("float32", *plummer_sphere(2049))
    a = accelerations(position, mass, softening="plummer", length=0.05, engine="cpu", precision="float32")
    forces = mass * sum_of_sizes(position, mass, Gravity(softening="plummer", length=0.05))
    # Both sides of a pair come from one number, so only roundings are left: each body's of an eps or two of its forces,
    # and of random sign, so that they add up to 2 eps Σ/√N. Three times that is beyond chance.
    assert np.abs(mass @ a.astype(float)).max() < 3 * 2 * EPS["float32"] * forces.sum() / np.sqrt(2049)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
@pytest.mark.parametrize("count,precision", [(1000, "float64"), (5000, "float32"), (20480, "float32")])
def test_the_bits_are_the_same_for_any_number_of_threads(count, precision):
    position, mass = plummer_sphere(count)
    given = {"softening": "plummer", "length": 0.05, "engine": "cpu", "precision": precision}
    many = accelerations(position, mass, **given)
    again = accelerations(position, mass, **given)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        one = accelerations(position, mass, **given)
    finally:
        numba.set_num_threads(before)
    assert many.tobytes() == one.tobytes() == again.tobytes()


@pytest.mark.parametrize("softening,length", LAWS)
def test_the_force_is_minus_the_gradient_of_the_potential(softening, length):
    bodies = random_bodies(20, seed=3)
    given = {"softening": softening, "length": length, "engine": "cpu", "potential": True}
    a, _ = accelerations(bodies.position, bodies.mass, **given)
    # The potential is right to some 1e-15, so its difference over 2h to 1e-15/h; the third derivative leaves h²/6 times
    # r^-4 of the closest pair, r = 0.2 or so: h = 1e-5 makes both about 1e-8.
    h = 1e-5
    for k in range(3):
        sides = []
        for step in (h, -h):
            moved = bodies.position.copy()
            moved[0, k] += step
            sides.append(accelerations(moved, bodies.mass, **given)[1][0])
        assert (sides[1] - sides[0]) / (2 * h) == pytest.approx(a[0, k], rel=1e-7, abs=1e-7 * np.abs(a[0]).max())


def test_a_spline_is_right_to_rounding():
    """A quarter of all pairs is within the spline, where polynomials have some ten roundings."""
    precision = "float32"  # float64: the engine ``matrix`` has the same function, and kernels take seconds to compile
    position, mass = rounded(precision, *plummer_sphere(600))
    given = {"softening": "spline", "length": 0.3, "potential": True}
    expected, expected_phi = accelerations(position, mass, engine="reference", **given)
    a, phi = accelerations(position, mass, engine="cpu", precision=precision, **given)
    size = np.linalg.norm(expected, axis=1)
    assert np.median(np.linalg.norm(a - expected, axis=1) / size) < 10 * EPS[precision]
    assert np.abs(a - expected).max() < 100 * EPS[precision] * size.max()
    assert np.abs(phi / expected_phi - 1).max() < ROUNDINGS * EPS[precision]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_bodies_without_mass_are_accelerated_and_exert_no_force(precision):
    position, mass = plummer_sphere(700)
    mass[::3] = 0
    given = {"softening": "cutoff", "length": 0.1, "engine": "cpu", "precision": precision}
    before = accelerations(position, mass, **given)
    assert (np.linalg.norm(before[::3], axis=1) > 0).all()
    position[::3] = position[::-3][: len(position[::3])] + 0.5
    after = accelerations(position, mass, **given)
    heavy = mass > 0
    assert before[heavy].tobytes() == after[heavy].tobytes()


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("softening,length", LAWS)
def test_coincident_bodies_exert_no_force_on_each_other(softening, length, precision):
    position = np.zeros((300, 3))  # more than a tile
    position[-1] = [2.0, 0, 0]
    mass = np.full(300, 0.25)
    a = accelerations(position, mass, softening=softening, length=length, engine="cpu", precision=precision)
    soft = np.hypot(2.0, length) if softening == "plummer" else 2.0
    assert a[:-1] == pytest.approx(np.tile([0.25 * 2 / soft**3, 0, 0], (299, 1)), rel=1e-6)
    assert a[-1] == pytest.approx([-0.25 * 299 * 2 / soft**3, 0, 0], rel=1e-6)


def test_many_bodies_without_mass_cost_as_many_interactions_as_there_are_masses():
    """Sums over the massive bodies alone; their own forces are the referee's, in whatever order the bodies come."""
    bodies = random_bodies(400)
    bodies.mass[np.random.default_rng(1).permutation(400)[:300]] = 0.0
    law, counted = Gravity(softening="plummer", length=0.05), []
    engine = layered(CpuEngine(law, "float64"))
    state = engine.load(bodies)
    state.progress.watch = counted.append
    engine.evaluate(state)
    assert counted[-1] == 100 * 400 == engine.work(state)
    a = state.acceleration.copy()
    engine.evaluate(state, Outputs.POTENTIAL)
    assert counted[-1] == 2 * 100 * 400
    expected, expected_phi = direct_sum(bodies.position, bodies.mass, law)
    assert np.abs(a - expected).max() < 1e-13 * np.abs(expected).max()
    assert np.abs(state.potential / expected_phi - 1).max() < 1e-13
    assert a.tobytes() == state.acceleration.tobytes()


def test_one_body_alone_has_no_acceleration():
    a, phi = accelerations([[1.0, 2, 3]], [5.0], engine="cpu", potential=True)
    assert a.tolist() == [[0, 0, 0]]
    assert phi.tolist() == [0]


@pytest.mark.parametrize("softening,length", LAWS)
@pytest.mark.parametrize("what", ["position", "mass"])
def test_a_nan_reaches_every_body(softening, length, what):
    """So that a run stops at the step where it appeared, and no law's comparison takes it for a close pair."""
    engine = CpuEngine(Gravity(softening=softening, length=length), "float32")
    state = engine.load(random_bodies(600))
    getattr(state, what).flat[0] = np.nan
    engine.evaluate(state)
    assert np.isnan(state.acceleration[1:]).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_units_do_not_matter(precision):
    """Metres and kilograms of a galaxy, 1e20 and 1e41, whose squares are beyond float32, give the bits of kpc."""
    position, mass = rounded(precision, *plummer_sphere(300))
    plain = accelerations(position, mass, softening="plummer", length=0.125, engine="cpu", precision=precision)
    metres, kilograms = 2.0**66, 2.0**120
    scaled = accelerations(
        position * metres,
        mass * kilograms,
        G=2.0**-20,
        softening="plummer",
        length=0.125 * metres,
        engine="cpu",
        precision=precision,
    )
    factor = 2.0**-20 * kilograms / metres**2
    assert (scaled.astype(float) == plain.astype(float) * factor).all()


def test_close_pairs_are_right_in_float64_far_below_the_range_of_float32():
    """The root is seeded in float32, which ends at 1e-38; the square of this distance is 1e-50."""
    position = [[0.0, 0, 0], [1e-25, 0, 0], [1.0, 0, 0]]
    a = accelerations(position, [1.0, 1.0, 1.0], engine="cpu")
    assert a[0, 0] == pytest.approx(1e50, rel=1e-14)
    assert a[1, 0] == pytest.approx(-1e50, rel=1e-14)
    assert a[2, 0] == pytest.approx(-2.0, rel=1e-14)


def test_an_engine_forgets_the_bodies_it_had_before():
    """A ragged tile of 600 bodies must not keep what 650 left there."""
    engine = CpuEngine(Gravity(softening="plummer", length=0.05), "float64")
    results = []
    for count in (600, 650, 600):
        state = engine.load(random_bodies(count))
        engine.evaluate(state)
        results.append(state.acceleration)
    assert results[0].tobytes() == results[2].tobytes()


def one_tile_pair(real):
    """The forces between two tiles of 64 bodies, by a kernel compiled just now, and by NumPy."""
    inner = cpu_pairs._interaction("plummer", 3, False, real, itself=False)
    interact = njit(inner.py_func, error_model="numpy", fastmath=cpu_pairs.FAST)
    rng = np.random.default_rng(1)
    body, other = (rng.uniform(0.5, 1.5, (4, 64)).astype(real) for _ in range(2))
    own, theirs, given = (np.zeros((4, 64), real) for _ in range(3))
    interact(64, 1, body, other, own, theirs, given, real(0.01))
    d = other[:3, None].astype(float) - body[:3, :, None]
    weighted = d * ((d * d).sum(axis=0) + 0.01) ** -1.5
    expected = (weighted * other[3]).sum(axis=2), -(weighted * body[3][:, None]).sum(axis=1)
    return interact, (own[:3], theirs[:3]), expected


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_the_kernel_is_right_where_the_bare_estimate_can_not_be_had(monkeypatch, real):
    monkeypatch.setattr(cpu_roots, "bare_estimates", lambda: False)
    monkeypatch.setattr(cpu_pairs, "roots", cpu_roots.roots.__wrapped__)
    monkeypatch.setattr(cpu_roots, "fourteen_bits", cpu_roots.fourteen_bits.__wrapped__)
    _, found, expected = one_tile_pair(real)
    for sums, right in zip(found, expected, strict=True):
        assert sums == pytest.approx(right, rel=0, abs=ROUNDINGS * EPS[np.dtype(real).name] * np.abs(right).max())


@pytest.mark.skipif(not cpu_roots.fourteen_bits(), reason="no AVX-512")
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_the_inner_loop_is_wide_and_has_no_division_and_no_square_root(real):
    interact, _, _ = one_tile_pair(real)
    assembly = "\n".join(interact.inspect_asm().values())
    assert not re.findall(r"\bv(?:div|sqrt)[ps][sd]", assembly)
    if real is np.float32:
        assert re.findall(r"vrsqrt14ps\s+%zmm", assembly)
        assert not re.findall(r"\bvcvtps2pd", assembly), "float64 has crept into a float32 kernel"
    else:
        assert re.findall(r"vfn?m(?:add|sub)\d+pd.*%zmm", assembly)


@pytest.mark.slow
def test_functions_of_kernels_may_be_called_from_python_before_and_after_them(tmp_path):
    """In any order, in the process that compiles and in one that loads."""
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    assert len({program("called_functions", order, env=env, check=True).stdout for order in ("poab", "dpcoba")}) == 1


def double(x):
    return x + x


def kernel_name(types=(numba.int64,), function=double, **options):
    return CpuKernelCache(function, options).name(types)


def test_a_kernel_is_compiled_again_if_a_function_of_another_file_changes():
    """Else a new version would go on with the old code of the functions that the kernel calls."""
    names = []
    for solve in (kepler.kepler_step, numba.njit(lambda x: x), numba.njit(lambda x: -x)):
        namespace = {"__name__": "nbody.later", "solve": solve}
        exec("def later(i, x, v, mu, h):\n    return solve(i, x, v, mu, h)", namespace)
        names.append(kernel_name(function=namespace["later"]))
    assert all(names) and len(set(names)) == 3


def test_a_kernel_is_found_by_all_that_it_was_compiled_from_and_for(monkeypatch):
    """Whoever else keeps one, before, after or at the same time. A kernel without vectors, made once to look at something,
    would else serve every later run."""
    others = [
        kernel_name(function=kepler.kepler_step.py_func),
        kernel_name(fastmath=True),
        kernel_name((numba.float64,)),
    ]
    monkeypatch.setattr(numba.config, "LOOP_VECTORIZE", 1 - numba.config.LOOP_VECTORIZE)
    others.append(kernel_name())
    monkeypatch.undo()
    assert kernel_name() == kernel_name() and len({kernel_name(), *others}) == 5


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache; returns whether a function is loaded from it, when it is called in a new process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def loaded():
        compiled = cpu_kernel(double)
        assert compiled(21) == 42
        return bool(compiled.stats.cache_hits)

    return loaded


def test_a_compiled_kernel_is_loaded_and_a_damaged_one_compiled_again(own_cache, tmp_path):
    assert not own_cache() and own_cache()
    (file,) = (tmp_path / "nbody/kernels").iterdir()
    whole = file.read_bytes()
    changed = (whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in (3, 50))
    for damaged in (b"", whole[:20], whole[:-1], *changed):
        file.write_bytes(damaged)
        assert not own_cache() and own_cache()


def test_a_kernel_of_a_version_with_other_modules_is_compiled_again(own_cache, monkeypatch):
    """It is pickled with the types of its arguments, by the names of their modules."""
    own_cache()

    def moved(data):
        raise ModuleNotFoundError("No module named 'nbody.earlier'")

    monkeypatch.setattr(cpu_kernels.pickle, "loads", moved)
    assert not own_cache()


def test_code_that_another_user_could_have_written_is_not_executed(own_cache, tmp_path, monkeypatch):
    """The name of a file is a hash of public things, and what is in it is unpickled and called."""
    folder = tmp_path / "nbody/kernels"
    own_cache()
    (file,) = folder.iterdir()
    for place, mode in ((file, 0o620), (file, 0o602), (folder, 0o770), (folder, 0o1777)):
        place.chmod(mode)
        assert not own_cache(), f"{place.name} {mode:o}"
        assert own_cache() and folder.stat().st_mode & 0o022 == 0, "what is compiled again is kept, and safe"
    for place in (file, folder):
        if os.geteuid() == 0:
            os.chown(place, 12345, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert not own_cache()
        assert own_cache() == (place is file and os.geteuid() == 0), "a folder of another user is never used"


def test_an_interrupt_that_llvm_swallows_is_one_all_the_same(own_cache, monkeypatch):
    def reduce(self):
        raise RuntimeError("no compiled object yet for <Library 'f'>")

    monkeypatch.setattr(CompileResult, "_reduce", reduce)
    with pytest.raises(KeyboardInterrupt):
        own_cache()


def test_a_disk_that_takes_no_kernel_ends_no_run(own_cache, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache, "whole_file", full)
    assert not own_cache() and not own_cache()


class Elapsed(threading.Timer):
    """The time has elapsed at once."""

    def start(self):
        self.function(*self.args)


def test_a_block_within_another_leaves_the_announcement_to_it(monkeypatch):
    monkeypatch.setattr(announce.threading, "Timer", Elapsed)
    outer, inner = [], []
    with announce.announcing(outer.append):
        for _ in range(2):
            with announce.announcing(inner.append), announce.compiling(""):
                assert not outer
        for _ in range(2):
            with announce.compiling(""):
                assert (len(outer), len(inner)) == (1, 2)


def test_a_python_program_in_a_terminal_hears_of_a_long_compilation_once(monkeypatch, capsys):
    monkeypatch.setattr(announce.threading, "Timer", Elapsed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(announce, "_notify", [announce._show])
    for _ in range(2):
        with announce.compiling("folder"):
            pass
    assert capsys.readouterr().err == "compiling kernels for this machine (once; kept in folder) …\n"
    monkeypatch.setattr(announce, "_notify", [announce._show])
    with messages(quiet=True), announce.compiling(""):
        assert capsys.readouterr().err == ""


def test_a_long_compilation_is_announced_once_and_only_on_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(announce.threading, "Timer", Elapsed)
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(terminal)))
        with messages():
            assert (cpu_kernel(lambda x: x + x)(21), cpu_kernel(lambda x: x * x)(2)) == (42, 4)
        out, error = capsys.readouterr()
        assert out == "" and error.count("compiling kernels") == terminal and (str(tmp_path) in error) == terminal


@pytest.mark.slow
def test_each_kernel_is_compiled_by_one_of_two_processes_and_kept_under_its_own_law(tmp_path):
    """It shows no name but its own. With Numba's names, which count from 1, a process that loaded ``cutoff`` in 3-D and
    ``plummer`` in 2-D, compiled by two others, computed forces 255 times too large, every other time."""
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(program, "cached_kernels", env={"XDG_CACHE_HOME": str(tmp_path)}) for _ in range(2)]
    (*counts, bits), (*others, loaded) = (run.result().stdout.split() for run in runs)
    assert [int(a) + int(b) for a, b in zip(counts, others, strict=True)] == [1, 1, 1, 1], "loaded once, compiled once"
    assert bits == loaded, "the process that compiles a kernel gets other bits than those that load it"
    assert not list((tmp_path / "nbody/kernels").glob("*.lock"))


def test_where_nothing_may_be_compiled_the_engine_says_so(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(DeviceError, match=r"NUMBA_DISABLE_JIT forbids it; unset that variable, or use --engine ref"):
        accelerations([[0.0, 0, 0], [1.0, 0, 0]], [1.0, 1.0], engine="cpu")
