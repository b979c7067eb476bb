"""The one way from a choice to an engine that can compute: for runs, arrays and trees."""

from nbody.fields.added import AddedFields
from nbody.forces.engine import Engine
from nbody.forces.layers import layered
from nbody.forces.problem import Problem
from nbody.forces.resources import check_fits, require_device
from nbody.parallel import ALONE, Team
from nbody.scenario.values import Group
from nbody.state import Column


def make_engine(
    kind: type[Engine],
    name: str,
    options: Group,
    problem: Problem,
    where: str = "",
    fields: AddedFields | None = None,
    team: Team = ALONE,
    added: tuple[tuple[Column, ...], int] = ((), 0),
) -> Engine:
    """The engine of a class, called ``name``, with its layers.

    Args:
        where: the beginning of the message if memory is short.
        fields: the external fields that it adds.
        team: the ranks that compute the forces together.
        added: the columns that the scheme adds to the state, and the bytes of its working arrays.

    Raises:
        DeviceError: the device is missing, or has too little memory.
        InputError: it does not support the problem, or there is too little memory.
    """
    require_device(kind, name)
    check_fits(kind, problem, where, *added)
    return layered(kind(problem.gravity, problem.precision, options, team), fields)
