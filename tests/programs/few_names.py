"""States, engines and layers have few public names, and engines no flags; in Numba's simulator."""

from test_house import MOST_NAMES, MOST_NAMES_OF_AN_ENGINE, public_names

from nbody.forces import ENGINES
from nbody.forces.layers import WithFields, WithoutMassless
from nbody.forces.systems.cpu import CpuSystemsEngine
from nbody.forces.systems.gpu import GpuSystemsEngine
from nbody.forces.tree.engine_cpu import TreeState
from nbody.state.device import DeviceState

for kind in (TreeState, DeviceState):
    names = public_names(kind)
    assert {"clock", "moves", "frames", "progress", "velocity"} <= names and len(names) <= MOST_NAMES, names
matrix = [ENGINES.load("matrix:numpy"), ENGINES.load("matrix:k07")]
engines = [ENGINES.load(name) for name in ENGINES if name != "matrix"]
for kind in (*engines, *matrix, WithFields, WithoutMassless, CpuSystemsEngine, GpuSystemsEngine):
    names = public_names(kind)
    assert {"supports", "memory", "load", "evaluate", "error"} <= names and len(names) <= MOST_NAMES_OF_AN_ENGINE, names
    assert not [name for name in names if isinstance(getattr(kind, name, None), bool)]
