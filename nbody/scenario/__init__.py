"""The scenario: the description of a run, read from YAML, checked and frozen.

=================== =====================================================================================================
 :mod:`.model`       the scenario; finds the component that a group names
 :mod:`.bodies`      the group ``initial``; :mod:`.collisions`, :mod:`.ensemble`, :mod:`.escape`, :mod:`.events`
 :mod:`.groups`      the other groups of keys
 :mod:`.values`      the types of values, and the errors for wrong ones
 :mod:`.quantities`  quantities such as ``0.01 pc``
 :mod:`.yaml_reader` the text; :mod:`.source` knows where each value was written, for errors
 :mod:`.options`     the values that have a short name (``--dt``, ``Simulation(dt=…)``)
 :mod:`.overrides`   replaces values by options and keywords
 :mod:`.packaged`    the scenarios that come with nbody
=================== =====================================================================================================

Names are imported at first use, so that the command line's help does not import pydantic (0.1 s).
"""

from typing import TYPE_CHECKING

from nbody.lazy import names_of

if TYPE_CHECKING:
    from nbody.scenario.bodies import Combined as Combined
    from nbody.scenario.bodies import FromArrays as FromArrays
    from nbody.scenario.bodies import FromFile as FromFile
    from nbody.scenario.bodies import Generated as Generated
    from nbody.scenario.groups import EnergyLimit as EnergyLimit
    from nbody.scenario.groups import IntegratorKeys as IntegratorKeys
    from nbody.scenario.groups import Record as Record
    from nbody.scenario.model import Scenario as Scenario
    from nbody.scenario.options import OPTIONS as OPTIONS
    from nbody.scenario.quantities import Units as Units

__all__, __getattr__ = names_of(
    __name__,
    {
        "bodies": "Combined FromArrays FromFile Generated",
        "groups": "EnergyLimit IntegratorKeys Record",
        "model": "Scenario",
        "options": "OPTIONS",
        "quantities": "Units",
    },
)
