"""The scenario: the description of a run, read from YAML, checked and frozen.

``model.py`` defines the scenario, ``groups.py`` its groups of keys and ``fields.py`` the types of values.
``options.py`` is the table of the values that have a short name (``--dt``, ``Simulation(dt=…)``).
``yaml_reader.py`` reads the text. ``source.py`` remembers where each value was written, so that an error names the file
and the line. ``units.py`` converts quantities such as ``0.01 pc``. ``packaged.py`` finds the scenarios that come with nbody.

Names are imported at first use, so that the command line's help does not import pydantic (0.1 s).
"""

from typing import TYPE_CHECKING

from nbody.lazy import names_of

if TYPE_CHECKING:
    from nbody.scenario.groups import Combined as Combined
    from nbody.scenario.groups import EnergyLimit as EnergyLimit
    from nbody.scenario.groups import FromArrays as FromArrays
    from nbody.scenario.groups import FromFile as FromFile
    from nbody.scenario.groups import Generated as Generated
    from nbody.scenario.groups import IntegratorKeys as IntegratorKeys
    from nbody.scenario.groups import Record as Record
    from nbody.scenario.model import Scenario as Scenario
    from nbody.scenario.options import OPTIONS as OPTIONS
    from nbody.scenario.units import Units as Units

__all__, __getattr__ = names_of(
    __name__,
    {
        "groups": "Combined EnergyLimit FromArrays FromFile Generated IntegratorKeys Record",
        "model": "Scenario",
        "options": "OPTIONS",
        "units": "Units",
    },
)
