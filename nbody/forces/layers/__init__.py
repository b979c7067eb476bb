"""Engines around another one: they change what goes into it or comes out, and are engines themselves."""

from nbody.fields.added import AddedFields
from nbody.forces.engine import Engine
from nbody.forces.layers.fields import WithFields
from nbody.forces.layers.massless import WithoutMassless


def layered(engine: Engine, fields: AddedFields | None = None) -> Engine:
    """The engine with its layers: bodies without mass are left out of its sums, and ``fields`` are added."""
    if engine.can.massless:
        engine = WithoutMassless(engine)
    return WithFields(engine, fields) if fields is not None else engine
