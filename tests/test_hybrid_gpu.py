"""The hybrid on a GPU: the same motion as on the CPU, in the simulator at small N and on a card."""

import numpy as np
import pytest
from compiled_forces import for_h200
from motions import checkpoint, moving, prepared, restore

import nbody
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import unsupported
from nbody.law import Gravity
from nbody.particles import Particles

DT = 0.1


def crowd(touching=0.0):
    """A star, and planets of which two are near each other, two come near each other in the next step, two stay near
    the star (on a CPU, tides act within the step on one that is there alone), and one has no mass and is near the first."""
    radius = np.array([1.0, 1.02, 1.5, 1.5, 2.0, 0.15, 0.2, 1.0])
    angle = np.array([0.0, 0.002, 1.0, 1.135, 3.0, 5.0, 2.0, 0.02])
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0 * angle], axis=1)
    v = np.stack([-np.sin(angle), np.cos(angle), 0.01 * radius], axis=1) / np.sqrt(radius)[:, None]
    v[3] *= 0.8
    m = np.array([1.0, 1e-5, 1e-5, 1e-4, 1e-4, 1e-3, 1e-5, 1e-5, 0.0])
    x, v = np.concatenate([np.zeros((1, 3)), x]), np.concatenate([np.zeros((1, 3)), v])
    return Particles(m, x - m @ x / m.sum(), v - m @ v / m.sum(), radius=np.full(9, touching) if touching else None)


def energy(run):
    return run.kinetic_energy + run.potential_energy


def bodies_of(motion):
    return motion.state.values("position", "velocity")


@pytest.mark.simulated
def test_the_simulator_makes_the_steps_of_the_cpu_and_goes_back():
    """Encounters, a pair that meets only at the end of a step, and a passage of the star. The forces on the card are summed
    in another order, and the bits are those of any division into calls, of a restored run too."""
    scheme, cpu = moving("hybrid", crowd(), DT)
    at_once, motion = moving("hybrid", crowd(), DT, engine="gpu-tiled")
    scheme.advance(cpu, 4)
    at_once.advance(motion, 4)
    for got, expected in zip(bodies_of(motion), bodies_of(cpu), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-13)
    cut, other = moving("hybrid", crowd(), DT, engine="gpu-tiled")
    cut.advance(other, 3)
    cut, other = restore(*prepared("hybrid", crowd(), DT, engine="gpu-tiled"), checkpoint(cut, other))
    cut.advance(other, 1)
    for got, expected in zip(bodies_of(other), bodies_of(motion), strict=True):
        np.testing.assert_array_equal(got, expected)
    moved, velocity = bodies_of(motion)
    back, motion = moving("hybrid", Particles(crowd().mass, moved, -velocity), DT, engine="gpu-tiled")
    back.advance(motion, 4)
    np.testing.assert_allclose(bodies_of(motion)[0], crowd().position, atol=1e-11)


@pytest.mark.simulated
def test_bodies_that_touch_on_a_gpu_merge_as_on_the_cpu():
    found = []
    for engine in ("cpu", "gpu-tiled"):
        run = nbody.Simulation(
            crowd(0.012), integrator="hybrid", dt=DT, collisions="merge", engine=engine, precision="float64",
            softening="none",
        )  # fmt: skip
        run.step(2)
        found.append(run.particles)
    assert found[0].count == found[1].count < 9
    np.testing.assert_allclose(found[1].position, found[0].position, atol=1e-12)


@pytest.mark.simulated
def test_a_step_that_is_made_again_for_more_memory_has_the_same_bits(monkeypatch):
    """Steps in which bodies touch are noted, as far as there is memory. A run that is resumed begins with little of it."""
    from nbody.integrators.solvers import groups

    x = [[0, 0, 0], [1, 0, 0], [1.005, 0, 0], [-3, 0, 0]]
    v = [[0, 0, 0], [0, 1, 0], [0, 1.05, 0], [0, -0.6, 0]]
    bodies, ends = Particles([1, 1e-5, 1e-5, 1e-5], x, v), []
    for room in (128, 1):
        monkeypatch.setattr(groups, "FIRST_ROOM", room)
        scheme, motion = moving("hybrid", bodies, DT, engine="gpu-tiled")
        assert scheme._make_on_gpu(motion, 1, np.full(4, 0.02)) is not None
        ends.append([*bodies_of(motion), motion.state.next_step.copy_to_host()])
    for got, expected in zip(*ends, strict=True):
        np.testing.assert_array_equal(got, expected)


def near_its_star(engine, speed, **values):
    """A planet that falls towards its star from 0.5, alone, a planet whose tide is strong, and one that is far away."""
    x = [[0, 0, 0], [0.5, 0, 0], [0, 1.2, 0], [-9, 0, 0]]
    v = [[0, 0, 0], [0, speed, 0], [-0.9, 0, 0], [0, -0.3, 0]]
    keys = {"integrator": "hybrid", "dt": 0.25, "engine": engine, "precision": "float64", "softening": "none"}
    return nbody.Simulation(Particles([1, 1e-6, 1e-3, 1e-6], x, v, radius=[0.02] * 4), **keys, **values)


@pytest.mark.simulated
def test_a_body_that_falls_on_its_star_alone_merges_with_it():
    times = []
    for engine in ("cpu", "gpu-tiled"):
        run = near_its_star(engine, speed=1e-3, collisions="merge")
        while run.particles.count == 4 and run.time < 2:
            run.step()
        times.append(run.time)
    assert times[0] == times[1] < 0.75  # it falls in π/8


@pytest.mark.simulated
def test_a_body_that_passes_its_star_alone_moves_as_on_the_cpu():
    """In the tides of the others."""
    ends = []
    for engine in ("cpu", "gpu-tiled"):
        run = near_its_star(engine, speed=0.6)
        run.step(2)
        ends.append(run.particles.position)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-13)


def test_the_hybrid_says_what_it_cannot_do_on_a_gpu():
    asked = unsupported(INTEGRATORS.load("hybrid"), ENGINES.load("gpu-symmetric"), Gravity(), "float64", particles=3)
    assert "fewer are faster on a CPU" in asked
    assert not unsupported(INTEGRATORS.load("hybrid"), ENGINES.load("gpu-symmetric"), Gravity(), "float64", particles=1000)


@pytest.mark.parametrize("seed", range(6))
def test_the_groups_of_a_step_are_those_of_the_cpu(seed):
    """Of random pairs among bodies with mass and without, some near the star."""
    from nbody.integrators.solvers import groups, near

    random = np.random.default_rng(seed)
    n, pairs = 24, np.sort(random.integers(1, 24, (10, 2)))[:, ::-1]
    m, hurried = np.where(random.random(n) < 0.3, 0.0, 1e-6), random.random(n) < 0.1
    m[0], hurried[0] = 1.0, False
    pairs = np.unique(pairs[pairs[:, 0] > pairs[:, 1]], axis=0)
    found = near.no_survey.py_func(n)._replace(
        close=pairs, near=np.ones(len(pairs), np.bool_), hurried=hurried, counts=np.array([len(pairs)])
    )
    expected = company(m, found)
    flags = np.stack([np.flatnonzero(hurried)] * 2, axis=1)
    label, lists = np.arange(n, dtype=np.int32), (np.zeros((n + 1, 4), np.int32), np.zeros((n * n, 2), np.int32))
    given = np.unique(np.concatenate([pairs, flags]), axis=0)
    count, length = groups._form(given, np.unique(given), m, label, np.zeros(n, np.int32), *lists)
    together, with_star = set(), set()
    for first, size, owner, star in lists[0][1 : count + 1].tolist():
        own = lists[1][first : first + size, 0].tolist()
        assert own == sorted(own) and (owner == -1 or m[owner] == 0.0)
        together |= {(i, j) for i in own for j in own if i > j and owner in (-1, i, j)}
        with_star |= set(own if owner == -1 else [owner]) if star else set()
    assert together == set(map(tuple, expected.pairs[: expected.counts[0]].tolist()))
    assert with_star == set(np.flatnonzero(expected.hurried).tolist())
    assert length == lists[0][1 : count + 1, 1].sum() and (label == np.arange(n)).all()


def company(m, found):
    """What :func:`.near.gather` makes of a survey."""
    from nbody import compute
    from nbody.integrators.solvers import near

    gather = near.gather

    @compute.kernel("cpu")
    def gathered(m, found, company):
        return gather(m, found, company)[0]

    return gathered(m, found, near.no_company.py_func(len(m)))


def test_the_kernels_of_the_hybrid_keep_their_numbers_in_registers():
    from numba.cuda import types

    from nbody.integrators.solvers import encounters_gpu, hybrid_kernels

    one, rows, kept = (types.Array(types.float64, axes, "C", aligned=True) for axes in (1, 2, 3))
    real, pairs = (types.Array(each, 2, "C", aligned=True) for each in (types.float32, types.int32))
    f, n, lists = types.float64, types.int64, types.UniTuple(pairs, 2)
    touching = types.Tuple((one, types.boolean, types.NamedTuple((pairs, rows, rows), encounters_gpu.Outcome)))
    moving, two = types.Tuple((rows, rows, one)), types.UniTuple(rows, 2)
    signatures = {
        "search": (real, pairs), "pass_star": (lists, f, kept, rows, rows, types.UniTuple(f, 2), two),
        "move": (lists, n, f, f, kept, moving, types.UniTuple(f, 2), two, touching),
    }  # fmt: skip
    for name, signature in signatures.items():
        of_groups = name in encounters_gpu.EncounterKernels._fields
        code, found = for_h200(getattr((encounters_gpu if of_groups else hybrid_kernels).kernels(), name), signature)
        assert found.local == 0 and found.registers <= 168, name
        if name == "search":  # the loop over pairs is in float32, and each body is two loads
            assert "ld.shared.v4.f32" in code and ".f64" not in code


def disc(engine, **values):
    bodies = nbody.planetesimals(1001, mass=1e-5, inner=0.8, outer=1.2, seed=3, dimensions=3)
    values |= {"integrator": "hybrid", "dt": 0.1, "engine": engine, "precision": "float64", "softening": "none"}
    return nbody.Simulation(Particles(bodies.mass, bodies.position, bodies.velocity, **values.pop("given", {})), **values)


@pytest.mark.gpu
def test_a_disc_of_planetesimals_moves_as_on_the_cpu_on_a_card():
    """A thousand bodies, with some twenty encounters in each step: the same positions for 20 steps, and after an orbit the
    energy error of the CPU."""
    runs = [disc("cpu"), disc("gpu-symmetric"), disc("gpu-symmetric")]
    first, errors = energy(runs[0]), []
    for steps in (20, 40):
        for run in runs:
            run.step(steps)
        ends = [run.particles.position for run in runs]
        if steps == 20:
            np.testing.assert_allclose(ends[1], ends[0], atol=1e-11)
        np.testing.assert_array_equal(ends[2], ends[1])
        errors = [abs(energy(run) / first - 1) for run in runs]
    assert errors[1] < 2 * errors[0] + 1e-13


@pytest.mark.gpu
def test_planetesimals_that_touch_merge_on_a_card_as_on_the_cpu():
    ends = []
    for engine in ("cpu", "gpu-symmetric"):
        run = disc(engine, given={"radius": np.full(1001, 1e-3)}, collisions="merge")
        run.step(30)
        ends.append(run.particles)
    assert ends[1].count == ends[0].count < 1001
    np.testing.assert_allclose(ends[1].position, ends[0].position, atol=1e-10)
