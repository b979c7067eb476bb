"""The scenario: what a run is, read from YAML, checked, frozen.

``model.py`` says what a scenario holds, ``groups.py`` its groups of keys, ``fields.py`` what a field may hold,
``yaml_reader.py`` how the text is read, ``source.py`` where each value was written, so that an error names the
file and the line, and ``packaged.py`` the scenarios that come with nbody.
"""

from nbody.scenario.groups import EnergyLimit, FromFile, Generated, Integrator, Record
from nbody.scenario.model import OPTIONS, Scenario

__all__ = ["OPTIONS", "EnergyLimit", "FromFile", "Generated", "Integrator", "Record", "Scenario"]
