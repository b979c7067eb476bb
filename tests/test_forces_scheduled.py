"""gpu-scheduled: whatever order its instructions have, the bits are those of gpu-symmetric."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import random_bodies

from nbody import cache
from nbody.forces import ENGINES
from nbody.law import Gravity
from nbody.state import Want

PLUMMER = Gravity(1.5, 3, "plummer", 0.05)
MASSES, COUNTS, LAWS = ("equal", "product", "separate"), (20000, 40000, 140000), ("plummer", "cutoff", "none")
"""Each N has another tiling."""


@pytest.fixture
def scheduled():
    """The engine's module."""
    from nbody.forces.scheduled import engine

    return engine


def evaluated(engine, bodies, potential=Want.ACCELERATION):
    """The accelerations, and the potential energy."""
    state = engine.load(bodies)
    engine.evaluate(state, potential)
    return state.forces()[0], state.snapshot().wait().sums[1]


def bodies_of(count, masses):
    """Bodies whose masses the kernel treats in a given form."""
    bodies = random_bodies(count, 3)
    if masses == "equal":
        bodies.mass[:] = 0.7
    elif masses == "separate":
        bodies.mass[: count // 3] = 0.0
    return bodies


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.gpu
@pytest.mark.parametrize("masses,count,softening", [
    *[(MASSES[m], COUNTS[c], LAWS[(m + c) % 3]) for m in range(3) for c in range(3)],  # every two of them meet
    ("product", 1, "plummer"), ("product", 33, "plummer"), ("separate", 5001, "cutoff"),
])  # fmt: skip
def test_it_has_the_bits_of_the_symmetric_engine(masses, count, softening, own_cache):
    bodies, law = bodies_of(count, masses), Gravity(1.5, 3, softening, 0.0 if softening == "none" else 0.05)
    for potential in (Want.ACCELERATION, Want.ENERGY):
        here, energy = evaluated(ENGINES.load("gpu-scheduled")(law, "float32"), bodies, potential)
        there, expected = evaluated(ENGINES.load("gpu-symmetric")(law, "float32"), bodies, potential)
        assert np.array_equal(here, there)
        assert energy == expected or potential == Want.ACCELERATION


@pytest.mark.gpu
@pytest.mark.parametrize("masses", ["equal", "product"])
@pytest.mark.parametrize("count", COUNTS)
def test_every_order_has_the_same_bits(masses, count, monkeypatch, own_cache, scheduled):
    """All that may be chosen, with and without the energy; on a Hopper there is at least one."""
    from nbody import gpu

    if gpu.facts().compute_capability != scheduled.HOPPER:
        pytest.skip("the compiler's order stays on this card")
    bodies, used = bodies_of(count, masses), []

    def forced(orders, number):
        used.append(orders.use(number))
        return number if used[-1] else scheduled.COMPILER

    expected, energy = evaluated(ENGINES.load("gpu-symmetric")(PLUMMER, "float32"), bodies, Want.ENERGY)
    for number in range(len(scheduled.TUNINGS)):
        monkeypatch.setattr(scheduled.Orders, "fastest", lambda orders, n=number: forced(orders, n))
        monkeypatch.setattr(scheduled.ScheduledEngine, "_ordered", set())
        scheduled.scheduled_kernel.cache_clear()  # otherwise the order of an order would be tried
        monkeypatch.setattr(cache, "recall", lambda kind: {})
        for potential in (Want.ACCELERATION, Want.ENERGY):
            here, also = evaluated(ENGINES.load("gpu-scheduled")(PLUMMER, "float32"), bodies, potential)
            assert np.array_equal(here, expected), (number, potential)
            assert potential == Want.ACCELERATION or also == energy
    assert True in used


@pytest.mark.gpu
def test_the_order_is_chosen_once(monkeypatch, own_cache, scheduled):
    bodies, measured = bodies_of(20000, "product"), []
    monkeypatch.setattr(scheduled.Orders, "fastest", lambda orders: measured.append(1) or scheduled.COMPILER)
    for _ in range(2):
        monkeypatch.setattr(scheduled.ScheduledEngine, "_ordered", set())
        scheduled.scheduled_kernel.cache_clear()  # otherwise the order of an order would be tried
        evaluated(ENGINES.load("gpu-scheduled")(PLUMMER, "float32"), bodies)
    assert len(measured) == 2  # with the energy and without
    assert len(cache.recall(scheduled.KIND)) == 2


# --- Choosing, without a card -------------------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch):
    """A function that makes the orders of a kernel out of invented machine code, and the list of what was loaded."""
    from nbody import gpu
    from nbody.forces.scheduled import orders

    loaded = [b"compiler"]
    monkeypatch.setattr(gpu, "machine_code", lambda compiled: b"compiler")
    monkeypatch.setattr(gpu.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(orders, "replace_machine_code", lambda compiled, code: loaded.append(code))
    monkeypatch.setattr(orders, "kernels", lambda code: [SimpleNamespace(start=0, size=len(code))])

    def make(code_of, times, wrong=()):
        monkeypatch.setattr(orders, "reordered", lambda code, tuning: code_of(orders.TUNINGS.index(tuning)))
        monkeypatch.setattr(gpu, "milliseconds", lambda *_: times[loaded[-1]])
        pairs = SimpleNamespace(overloads={"a signature": object()})
        outcome = lambda: b"other bits" if loaded[-1] in wrong else b"bits"  # noqa: E731
        return orders.Orders(pairs, lambda: None, outcome), loaded

    return make


TIMES = {b"compiler": 3.0, b"0": 4.0, b"2": 1.0, b"3": 2.0}


def three_orders(number):
    """The code of orders 0, 2 and 3; there are no others."""
    return str(number).encode() if number in (0, 2, 3) else None


def test_the_fastest_of_the_orders_that_exist_is_chosen(made):
    orders, loaded = made(three_orders, TIMES)
    assert orders.fastest() == 2
    assert orders.use(2) and loaded[-1] == b"2"
    assert not orders.use(1) and loaded[-1] == b"2"
    assert orders.use(-1) and loaded[-1] == b"compiler"


def test_an_order_that_gives_other_bits_is_not_used(made):
    assert made(three_orders, TIMES, [b"2"])[0].fastest() == 3
    assert made(three_orders, TIMES, [b"0", b"2", b"3"])[0].fastest() == -1


def test_a_cached_order_is_used_again_if_its_instructions_are_the_same(made):
    from nbody.forces.scheduled.reorder import TUNINGS

    orders, loaded = made({2: b"an order"}.get, {})
    entry = [2, orders.digest(2)]
    for other in (None, 2, [2], [-2, entry[1]], [len(TUNINGS), entry[1]], [1, entry[1]], [2, "of earlier code"]):
        assert not orders.use_cached(other), other
    assert loaded == [b"compiler"]
    assert orders.use_cached(entry) and loaded[-1] == b"an order"
    assert orders.use_cached([-1, orders.digest(-1)]) and loaded[-1] == b"compiler"


def test_an_order_that_was_loaded_in_part_can_be_taken_back(made, monkeypatch):
    """Ctrl-C may come at any time; what then runs has not been compared with anything."""
    from nbody.forces.scheduled import orders as module

    orders, loaded = made(lambda number: b"an order", {})

    def interrupted(compiled, code):
        loaded.append(code)
        if code != b"compiler":
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "replace_machine_code", interrupted)
    with pytest.raises(KeyboardInterrupt):
        orders.use(1)
    assert loaded[-1] == b"an order"
    orders.use(-1)
    assert loaded[-1] == b"compiler"


def test_a_kernel_is_recognised_by_its_instructions_whatever_was_compiled_before(monkeypatch):
    from scheduled_code import cubin, machine_code

    from nbody import gpu
    from nbody.forces.scheduled.orders import COMPILER, Orders

    kernel = ((1, 10), "product", Want.ACCELERATION)
    codes = [cubin(*kernel), machine_code(*kernel)]
    assert codes[0] != codes[1]  # the name counts what was compiled
    digests = []
    for code in codes:
        monkeypatch.setattr(gpu, "machine_code", lambda compiled, code=code: code)
        digests.append(Orders(SimpleNamespace(overloads={0: 0}), lambda: None, lambda: b"").digest(COMPILER))
    assert digests[0] == digests[1]


# --- Loading, without a card ---------------------------------------------------------------------------------------------


@pytest.fixture
def hopper(monkeypatch, scheduled):
    """The engine's module, as if its card were a Hopper; states are no more than a number of bodies."""
    from nbody import gpu
    from nbody.forces.direct.gpu_symmetric import SymmetricEngine

    card = SimpleNamespace(name="a card", driver="1", compute_capability=scheduled.HOPPER)
    plan = SimpleNamespace(tiling="a tiling", masses="product")
    monkeypatch.setattr(scheduled.ScheduledEngine, "_ordered", set())
    monkeypatch.setattr(gpu, "SIMULATED", False)
    monkeypatch.setattr(gpu, "require", lambda what, remedy: None)
    monkeypatch.setattr(gpu, "use_device", lambda number: None)
    monkeypatch.setattr(gpu, "facts", lambda: card)
    monkeypatch.setattr(SymmetricEngine, "load", lambda engine, n: SimpleNamespace(count=n, workspace=plan))
    monkeypatch.setattr(scheduled.ScheduledEngine, "acting", lambda engine, state: state.count)
    monkeypatch.setattr(scheduled, "scheduled_kernel", lambda *which: which)
    return scheduled


def test_few_bodies_and_other_cards_keep_the_compilers_order(hopper, monkeypatch):
    from nbody import gpu

    asked = []
    monkeypatch.setattr(
        hopper.ScheduledEngine, "_choose_order", lambda engine, potential, state: asked.append(potential)
    )
    engine = hopper.ScheduledEngine(PLUMMER, "float32")
    engine.load(hopper.FEWEST - 1)
    assert asked == []
    engine.load(hopper.FEWEST)
    assert asked == [Want.ACCELERATION, Want.ENERGY]
    monkeypatch.setattr(gpu.facts(), "compute_capability", (8, 6))
    engine.load(hopper.FEWEST)
    assert len(asked) == 2


def test_after_an_interrupt_the_compilers_order_is_loaded(hopper, monkeypatch, own_cache):
    used = []

    class Interrupted:
        def __init__(self, *_):
            pass

        def digest(self, number):
            return "a digest"

        def use_cached(self, entry):
            return False

        def fastest(self):
            raise KeyboardInterrupt

        def use(self, number):
            used.append(number)

    monkeypatch.setattr(hopper, "Orders", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        hopper.ScheduledEngine(PLUMMER, "float32").load(hopper.FEWEST)
    assert used == [hopper.COMPILER] and not hopper.ScheduledEngine._ordered
    assert cache.recall(hopper.KIND) == {}


def test_an_order_is_judged_by_accelerations_and_potential(hopper):
    engine = hopper.ScheduledEngine(PLUMMER, "float32")
    rows, column = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.array([7, 8], np.float32)
    state, computed = SimpleNamespace(forces=lambda: (rows, column)), []
    engine._compute = lambda state, potential: computed.append(potential)
    assert engine._bits(Want.ENERGY, state) == rows.tobytes() + column.tobytes()
    assert computed == [Want.ENERGY]
