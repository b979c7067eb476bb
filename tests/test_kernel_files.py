"""A GPU kernel that is loaded from the disk is the kernel that would be compiled, or it is not loaded.

Without a GPU: NVVM and nvJitLink compile for a device that is not there, and nothing is launched.
"""

import enum
import os
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import program

from nbody import compute
from nbody.compute.compiling import cache
from nbody.compute.compiling.fingerprint import Unknown, fingerprint
from nbody.forces import ENGINES

pytestmark = pytest.mark.skipif(compute.SIMULATED, reason="nothing is compiled in the simulator")


# --- What a kernel is made of --------------------------------------------------------------------------------------------


class Level(enum.IntEnum):
    LOW, HIGH = 1, 2


FACTOR = 2.0


def adding(term):
    def helper(x):
        return x + term

    def function(x):
        return FACTOR * helper(x)

    return function


def test_functions_of_the_same_code_and_values_are_the_same():
    assert fingerprint(adding(1.5)) == fingerprint(adding(1.5))


@pytest.mark.parametrize("term", [1, 2.0, True, "1.5", np.float32(1.5), (1.5,), Level.LOW, None, np.array([1.5])])
def test_a_value_deep_inside_makes_another_kernel(term):
    assert fingerprint(adding(term)) != fingerprint(adding(1.5))


def test_a_global_makes_another_kernel(monkeypatch):
    before = fingerprint(adding(1.5))
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    assert fingerprint(adding(1.5)) != before


def test_numbers_of_one_value_and_two_types_differ():
    assert len({fingerprint(adding(one)) for one in (1, 1.0, True, np.float32(1), np.float64(1), Level.LOW)}) == 6


def test_a_function_made_by_exec_is_told_by_its_code():
    made: list[dict] = [{}, {}]
    for space, text in zip(made, ("def function(x): return x", "def function(x): return -x"), strict=True):
        exec(text, space)
    assert fingerprint(adding(made[0]["function"])) != fingerprint(adding(made[1]["function"]))


def test_what_no_text_describes_is_refused():
    with pytest.raises(Unknown):
        fingerprint(adding(object()))


def kernels():
    """A kernel of each engine for GPUs."""
    from nbody.forces.direct.gpu_pair_sums import root_kernel, sum_kernel
    from nbody.forces.direct.gpu_symmetric import build, tiling_for
    from nbody.forces.gpu_engine import Shape
    from nbody.forces.tree.expansions.operators import Basis
    from nbody.forces.tree.octree.cells_gpu import mark_kernel, number, scan, write
    from nbody.forces.tree.octree.groups_gpu import arrange, link_kernel
    from nbody.forces.tree.octree.moments_gpu import upward_kernels
    from nbody.forces.tree.octree.order_gpu import bounds_kernels, gather_kernel, key_kernel
    from nbody.forces.tree.walk.regions_gpu import region_kernel
    from nbody.forces.tree.walk.walk_gpu import WalkPlan, walk_kernel
    from nbody.state import Outputs
    from nbody.state.device_moves import make_moves

    shape, tiling = Shape("plummer", 3, np.dtype(np.float32), Outputs.ENERGY), tiling_for(20480, "float32")
    engines = [ENGINES.load(name) for name in ENGINES if name.startswith("gpu-") and name != "gpu-tree"]
    simple = [engine._build(shape) for engine in engines if not engine.can.pairs_once]
    pairs = [build(shape, tiling, masses) for masses in ("equal", "product", "separate")]
    basis = Basis(4, softened=True, potential=True)
    cells = [mark_kernel(3), scan, number, write, link_kernel(3), arrange]
    order = [*bounds_kernels(), key_kernel(3), key_kernel(3, True), gather_kernel(np.float32)]
    tree = [*order, *cells, *upward_kernels(basis, np.float32), region_kernel(basis, np.float32, False)]
    tree.append(walk_kernel(WalkPlan(shape, basis, False)))
    sums = [sum_kernel(tiling, "equal", np.float32, Outputs.ENERGY, shared) for shared in (False, True)]
    return [make_moves, *simple, *pairs, *tree, *sums, root_kernel("equal", np.float32, False)]


def test_every_kernel_of_a_run_can_be_kept():
    prints = [fingerprint(kernel.py_func) for kernel in kernels()]
    assert len(set(prints)) == len(prints) > 8


def test_a_kernel_is_the_same_in_every_process():
    found = {program("questions", "fingerprints", env={"PYTHONHASHSEED": seed}, check=True).stdout for seed in "12"}
    assert len(found) == 1


# --- What is kept --------------------------------------------------------------------------------------------------------


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A device that compiles and does not run, and an empty folder; counts what is compiled."""
    pytest.importorskip("cuda.core")
    from numba.cuda import codegen, dispatcher

    from nbody.compute.compiling import gpu_kernels
    from nbody.compute.gpu.device import DeviceProperties

    card = DeviceProperties("no card", (9, 0), 132, 1e9, 2**30, 2**30, "1.2.3")
    device = SimpleNamespace(compute_capability=card.compute_capability, id=0)
    monkeypatch.setattr(gpu_kernels, "facts", lambda: card)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    monkeypatch.setattr(codegen.devices, "get_context", lambda: SimpleNamespace(device=device))
    monkeypatch.setattr(dispatcher._Kernel, "bind", lambda kernel: kernel._codelibrary.get_cubin())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gpu_kernels._toolchain.cache_clear()
    compiled, compile_cuda = [], dispatcher.compile_cuda

    def counted(function, *arguments, **options):
        compiled.append(function.__name__)
        return compile_cuda(function, *arguments, **options)

    monkeypatch.setattr(dispatcher, "compile_cuda", counted)
    yield compiled
    gpu_kernels._toolchain.cache_clear()


def scaling(factor, **options):
    """A kernel with a constant in it, made anew as in another process."""
    from nbody.compute import cuda

    @compute.kernel("gpu", **options)
    def scale(x):
        x[cuda.grid(1)] *= factor

    return scale


def cubin(kernel, dtype="float32"):
    """The machine code of a kernel for one array."""
    from numba.cuda import types

    try:
        made = kernel.compile((types.Array(getattr(types, dtype), 1, "C"),))
    except Exception as error:
        if "nvvm" in str(error).lower():
            pytest.skip(f"no NVVM here: {error}")
        raise
    return compute.machine_code(made)


def test_a_kernel_is_compiled_once_and_loaded_with_the_same_machine_code(compiler):
    first = cubin(scaling(2.0))
    assert cubin(scaling(2.0)) == first and compiler == ["scale"]


def test_another_constant_option_type_driver_or_setting_is_another_kernel(compiler, monkeypatch):
    from nbody.compute.compiling import gpu_kernels

    cubin(scaling(2.0))
    cubin(scaling(3.0))
    cubin(scaling(2.0, fastmath=True))
    cubin(scaling(2.0), "float64")
    monkeypatch.setenv("NUMBA_SOMETHING", "1")
    gpu_kernels._toolchain.cache_clear()
    cubin(scaling(2.0))
    assert len(compiler) == 5


def test_a_damaged_or_foreign_file_is_compiled_again(compiler):
    cubin(scaling(2.0))
    (file,) = (cache.folder() / "kernels").iterdir()
    whole = file.read_bytes()
    cubin(scaling(3.0))
    (other,) = {*file.parent.iterdir()} - {file}
    damaged = [b"", whole[:40], whole[:-1], whole[:500] + b"?" + whole[501:], other.read_bytes()]
    for content in damaged:
        file.write_bytes(content)
        del compiler[:]
        anew = cubin(scaling(2.0))
        assert compiler == ["scale"]
        assert cubin(scaling(2.0)) == anew and compiler == ["scale"]


def test_a_folder_that_cannot_be_written_ends_no_run(compiler, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cubin(scaling(2.0)) and cubin(scaling(2.0)) and len(compiler) == 2


def test_few_blocks_are_launched_without_a_warning(compiler, recwarn):
    assert scaling(2.0)[3, 64].griddim == (3, 1, 1)
    assert not recwarn.list


def test_kernels_that_nobody_has_asked_for_in_months_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    long_ago = time.time() - 86400 * (cache.UNUSED_DAYS + 1)
    for name in ("old", "asked for"):
        cache.store_bytes(f"kernels/{name}", b"code")
        os.utime(tmp_path / "nbody/kernels" / name, (long_ago, long_ago))
    assert cache.load_bytes("kernels/asked for") == b"code"
    (tmp_path / "nbody/kernels/removed by another process").symlink_to("nothing")
    assert cache.store_bytes("kernels/new", b"code")
    assert cache.load_bytes("kernels/old") is None and cache.load_bytes("kernels/asked for") == b"code"


def test_who_waits_in_vain_for_a_lock_leaves_it_to_its_holder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "TIMEOUT", 0.05)
    with cache.by_one_process("kernels/a"):
        with cache.by_one_process("kernels/a"):
            pass
        assert list(tmp_path.rglob("a.lock"))
    assert not list(tmp_path.rglob("a.lock"))
