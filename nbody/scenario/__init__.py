"""The scenario: the description of a run, read from YAML, checked and frozen.

``model.py`` defines the scenario, ``groups.py`` its groups of keys and ``fields.py`` the types of values.
``yaml_reader.py`` reads the text. ``source.py`` remembers where each value was written, so that an error names the file
and the line. ``units.py`` converts quantities such as ``0.01 pc``. ``packaged.py`` finds the scenarios that come with nbody.
"""

from nbody.scenario.groups import Combined, EnergyLimit, FromArrays, FromFile, Generated, Integrator, Record
from nbody.scenario.model import OPTIONS, Scenario
from nbody.scenario.units import Units

__all__ = [
    "OPTIONS", "Combined", "EnergyLimit", "FromArrays", "FromFile", "Generated", "Integrator", "Record", "Scenario", "Units",
]  # fmt: skip
