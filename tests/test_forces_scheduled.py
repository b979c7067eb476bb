"""gpu-scheduled: whatever order its machine code is in, the bits are those of gpu-symmetric."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import random_bodies

from nbody import cache
from nbody.forces import ENGINES
from nbody.gpu.sass import PAIR_TUNINGS
from nbody.law import Gravity
from nbody.state import Want

PLUMMER = Gravity(1.5, 3, "plummer", 0.05)


def evaluated(engine, bodies, potential=Want.ACCELERATION):
    state = engine.load(bodies)
    engine.evaluate(state, potential)
    return state.forces()[0], state.snapshot().wait().sums[1]


def bodies_of(count, masses, dimensions=3):
    bodies = random_bodies(count, dimensions)
    if masses == "equal":
        bodies.mass[:] = 0.7
    elif masses == "separate":
        bodies.mass[: count // 3] = 0.0
    return bodies


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.gpu
@pytest.mark.parametrize("masses", ["equal", "product", "separate"])
@pytest.mark.parametrize("count", [1, 33, 5001, 40000, 140000])
@pytest.mark.parametrize("softening,length", [("plummer", 0.05), ("cutoff", 0.05), ("none", 0.0)])
def test_it_has_the_bits_of_the_symmetric_engine(masses, count, softening, length, own_cache):
    bodies = bodies_of(count, masses)
    law = Gravity(1.5, 3, softening, length)
    for potential in (Want.ACCELERATION, Want.ENERGY):
        here, energy = evaluated(ENGINES.load("gpu-scheduled")(law, "float32"), bodies, potential)
        there, expected = evaluated(ENGINES.load("gpu-symmetric")(law, "float32"), bodies, potential)
        assert np.array_equal(here, there)
        assert energy == expected or potential == Want.ACCELERATION


@pytest.mark.gpu
@pytest.mark.parametrize("masses", ["equal", "product"])
@pytest.mark.parametrize("count", [20000, 40000, 140000])
def test_every_order_has_the_same_bits(masses, count, monkeypatch, own_cache):
    """All that could be chosen, with and without the energy; on a Hopper there is one at least."""
    from nbody import gpu
    from nbody.forces.scheduled import engine as gpu_scheduled

    if gpu.facts().compute_capability != gpu_scheduled.HOPPER:
        pytest.skip("the assembler's order stays on this card")
    bodies, used = bodies_of(count, masses), []

    def noted(orders, number):
        used.append(orders.use(number))
        return number if used[-1] else gpu_scheduled.ASSEMBLER

    expected, energy = evaluated(ENGINES.load("gpu-symmetric")(PLUMMER, "float32"), bodies, Want.ENERGY)
    for number in range(len(PAIR_TUNINGS)):
        monkeypatch.setattr(gpu_scheduled._Orders, "fastest", lambda orders, n=number: noted(orders, n))
        monkeypatch.setattr(gpu_scheduled.ScheduledEngine, "_ordered", set())
        gpu_scheduled.scheduled_kernel.cache_clear()  # or it would be an order of an order
        monkeypatch.setattr(cache, "recall", lambda kind: {})
        for potential in (Want.ACCELERATION, Want.ENERGY):
            here, also = evaluated(ENGINES.load("gpu-scheduled")(PLUMMER, "float32"), bodies, potential)
            assert np.array_equal(here, expected), (number, potential)
            assert potential == Want.ACCELERATION or also == energy
    assert True in used


@pytest.mark.gpu
def test_the_order_is_measured_once(monkeypatch, own_cache):
    from nbody.forces.scheduled import engine as gpu_scheduled

    bodies, measured = bodies_of(20000, "product"), []
    monkeypatch.setattr(gpu_scheduled._Orders, "fastest", lambda orders: measured.append(1) or -1)
    for _ in range(2):
        monkeypatch.setattr(gpu_scheduled.ScheduledEngine, "_ordered", set())
        gpu_scheduled.scheduled_kernel.cache_clear()  # or it would be an order of an order
        evaluated(ENGINES.load("gpu-scheduled")(PLUMMER, "float32"), bodies)
    assert len(measured) == 2  # with the energy and without
    assert len(cache.recall(gpu_scheduled.KIND)) == 2


# --- Choosing, without a card -------------------------------------------------------------------------------------------


@pytest.fixture
def orders(monkeypatch):
    """A function that makes the orders of a kernel out of made-up machine code, and the list of what was run."""
    from nbody import gpu
    from nbody.forces.scheduled import engine as gpu_scheduled

    running = [b"assembler"]
    monkeypatch.setattr(gpu, "machine_code", lambda compiled: b"assembler")
    monkeypatch.setattr(gpu, "replace_machine_code", lambda compiled, code: running.append(code))
    monkeypatch.setattr(gpu.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(gpu_scheduled, "kernels", lambda code: [])

    def made(code_of, times, others=()):
        monkeypatch.setattr(
            gpu_scheduled, "with_pairs_scheduled", lambda code, tuning: code_of(PAIR_TUNINGS.index(tuning))
        )
        monkeypatch.setattr(gpu, "milliseconds", lambda *_: times[running[-1]])
        pairs = SimpleNamespace(overloads={"a signature": object()})
        return gpu_scheduled._Orders(
            pairs, lambda: None, lambda: b"other bits" if running[-1] in others else b"bits"
        ), running

    return made


def test_the_fastest_of_the_orders_that_there_are_is_chosen(orders):
    times = {b"assembler": 3.0, b"0": 4.0, b"2": 1.0, b"3": 2.0}
    kernel, running = orders(lambda k: str(k).encode() if k in (0, 2, 3) else None, times)
    assert kernel.fastest() == 2
    assert kernel.use(2) and running[-1] == b"2"
    assert not kernel.use(1) and running[-1] == b"2"
    assert kernel.use(-1) and running[-1] == b"assembler"


def test_an_order_that_comes_to_other_bits_is_not_taken(orders):
    def code_of(k):
        return str(k).encode() if k in (0, 2, 3) else None

    times = {b"assembler": 3.0, b"0": 4.0, b"2": 1.0, b"3": 2.0}
    assert orders(code_of, times, [b"2"])[0].fastest() == 3
    assert orders(code_of, times, [b"0", b"2", b"3"])[0].fastest() == -1


def test_an_order_that_was_kept_is_used_again_if_it_is_still_the_same(orders, monkeypatch):
    from nbody.forces.scheduled import engine as gpu_scheduled

    made = {2: b"an order"}
    kernel, running = orders(made.get, {})
    monkeypatch.setattr(gpu_scheduled, "kernels", lambda code: [SimpleNamespace(start=0, size=len(code))])
    kept = [2, kernel.digest(2)]
    for other in (None, 2, [2], [-2, kept[1]], [len(PAIR_TUNINGS), kept[1]], [1, kept[1]], [2, "of earlier code"]):
        assert not kernel.use_again(other), other
    assert running == [b"assembler"]
    assert kernel.use_again(kept) and running[-1] == b"an order"
    assert kernel.use_again([-1, kernel.digest(-1)]) and running[-1] == b"assembler"


def test_an_order_that_was_not_wholly_put_in_place_can_be_taken_back(orders, monkeypatch):
    """Ctrl-C may come at any time; what then runs would not have been compared with anything."""
    from nbody import gpu

    kernel, running = orders(lambda k: b"an order", {})

    def interrupted(compiled, code):
        running.append(code)
        if code != b"assembler":
            raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "replace_machine_code", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel.use(1)
    assert running[-1] == b"an order"
    kernel.use(-1)
    assert running[-1] == b"assembler"


def test_a_kernel_is_known_again_by_its_instructions_whatever_its_process_has_compiled_before(monkeypatch):
    from test_sass import machine_code

    from nbody import gpu
    from nbody.forces.scheduled.engine import _Orders

    codes = [machine_code((1, 10), "product", Want.ACCELERATION) for _ in range(2)]
    assert codes[0] != codes[1]  # the name counts
    digests = []
    for code in codes:
        monkeypatch.setattr(gpu, "machine_code", lambda compiled, code=code: code)
        digests.append(_Orders(SimpleNamespace(overloads={0: 0}), lambda: None, lambda: b"").digest(-1))
    assert digests[0] == digests[1]


# --- Loading, without a card ---------------------------------------------------------------------------------------------


@pytest.fixture
def hopper(monkeypatch):
    """The engine, as if its card were one; its states are no more than a number of bodies."""
    from nbody import gpu
    from nbody.forces.direct.gpu_symmetric import SymmetricEngine
    from nbody.forces.scheduled import engine as gpu_scheduled

    monkeypatch.setattr(gpu_scheduled.ScheduledEngine, "is_of_its_own", classmethod(lambda kind: True))
    monkeypatch.setattr(gpu_scheduled.ScheduledEngine, "_ordered", set())
    monkeypatch.setattr(gpu, "require", lambda what: None)
    monkeypatch.setattr(gpu, "facts", lambda: SimpleNamespace(name="a card", driver="1"))
    plan = SimpleNamespace(tiling="a tiling", masses="product")
    monkeypatch.setattr(SymmetricEngine, "load", lambda engine, n: SimpleNamespace(count=n, workspace=plan))
    monkeypatch.setattr(gpu_scheduled, "scheduled_kernel", lambda *which: which)
    return gpu_scheduled


def test_few_bodies_keep_the_assemblers_order(hopper, monkeypatch):
    asked = []
    monkeypatch.setattr(hopper.ScheduledEngine, "_order", lambda engine, potential, state: asked.append(potential))
    engine = hopper.ScheduledEngine(PLUMMER, "float32")
    engine.load(hopper.FEWEST - 1)
    assert asked == []
    engine.load(hopper.FEWEST)
    assert asked == [Want.ACCELERATION, Want.ENERGY]


def test_whoever_comes_after_an_interrupt_finds_the_assemblers_order(hopper, monkeypatch, own_cache):
    used = []

    class Interrupted:
        def __init__(self, *_):
            pass

        def digest(self, number):
            return "a digest"

        def use_again(self, kept):
            return False

        def fastest(self):
            raise KeyboardInterrupt

        def use(self, number):
            used.append(number)

    monkeypatch.setattr(hopper, "_Orders", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        hopper.ScheduledEngine(PLUMMER, "float32").load(hopper.FEWEST)
    assert used == [hopper.ASSEMBLER] and not hopper.ScheduledEngine._ordered
    assert cache.recall(hopper.KIND) == {}


def test_an_order_is_judged_by_accelerations_and_potential(hopper):
    engine = hopper.ScheduledEngine(PLUMMER, "float32")
    rows, column = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.array([7, 8], np.float32)
    state, computed = SimpleNamespace(forces=lambda: (rows, column)), []
    engine._compute = lambda state, potential: computed.append(potential)
    assert engine._bits(Want.ENERGY, state) == rows.tobytes() + column.tobytes()
    assert computed == [Want.ENERGY]
