"""``nbody.map``: makes a map of a scenario and two axes, or goes on with the one in a file."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nbody.errors import InputError, counted, printable
from nbody.given import path_text
from nbody.initial import check_initial
from nbody.maps.stability_map import Show, StabilityMap
from nbody.output_file import checked_path
from nbody.run.setup import listener
from nbody.scenario import Scenario
from nbody.scenario.ensemble import keys_of, range_of
from nbody.scenario.yaml_reader import read_assignment
from nbody.trajectory.grid_file import MAP, is_map
from nbody.trajectory.writing.output_path import check_suffix
from nbody.whole_file import Notify, keep_older_file

Axis = str | tuple[str, Sequence[float]]
"""A path and its values: ``bodies.1.a=0.9..1.1:400``, or both apart."""


def map(
    scenario: Scenario | str | Path,
    x: Axis = "",
    y: Axis = "",
    quantity: str | Sequence[str] = "megno",
    output: str | Path | None = None,
    *,
    overwrite: bool = False,
    show: Show = lambda fraction, text: None,
    notify: Notify | None = None,
    **values: Any,
) -> StabilityMap:
    """Compute a number of each system of a grid, or open the file of a map. ::

        x, y = "bodies.2.a=1.22..1.38:80", "bodies.2.e=0..0.06:25"
        m = nbody.map("chaotic_planets", x, y, ["megno", "e_max(2)"], "output/map.h5")
        m.values["megno"], m.x, m.y, m.units
        m.plot("megno").savefig("map.png")
        nbody.Simulation(m.at(1.3, 0.02))  # one of the systems

    Args:
        scenario: a scenario, its name or its file; or the file of a map, and nothing else.
        x, y: the axes: a key of the bodies and its values, a range or a list, or ``("bodies.1.a", array)``; without ``y``
            the map has one axis. By default the ranges of the scenario's ``ensemble: {vary: …}``, whose last path is ``x``.
        quantity: one or several of :data:`nbody.maps.QUANTITIES`.
        output: the file. If it holds this map, that goes on; another map keeps a numbered name.
        overwrite: begin anew, and replace the file.
        show: gets the fraction that is done and a text, several times per second.
        values: values that replace those of the scenario, as for :class:`nbody.Simulation`.

    Raises:
        InputError: one line about a wrong value.
        KeyboardInterrupt: a signal stopped it; the same call goes on.
    """
    notify = listener(notify)
    if not x and not isinstance(scenario, Scenario) and is_map(scenario):
        return StabilityMap.load(scenario)
    settings = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    made = prepared(settings.with_keywords(values), {"x": x, "y": y}, quantity, output, notify, overwrite)
    if not made.compute(show, notify):
        raise KeyboardInterrupt
    return made


def prepared(
    scenario: Scenario,
    axes: Mapping[str, Axis],
    quantity: str | Sequence[str],
    output: str | Path | None,
    notify: Notify,
    overwrite: bool = False,
) -> StabilityMap:
    """The map of a scenario with these ``axes``, as far as ``output`` holds it. Raises InputError."""
    if axes["y"] and not axes["x"]:
        raise InputError("--y: is the second axis; give --x too")
    if axes["x"]:
        if scenario.ensemble:
            notify("the axes of the map replace the scenario's 'ensemble'")
        alone = scenario.with_keywords({"ensemble": {"systems": 1, "vary": None}})
        vary = dict(_varied(name, axes[name], alone) for name in ("y", "x") if axes[name])
        if len(vary) < sum(bool(each) for each in axes.values()):
            raise InputError("--y: is the value of --x; give another one")
        scenario = scenario.with_keywords({"ensemble": {"systems": None, "vary": vary}})
    path = None if output is None else Path(path_text(output))
    made = StabilityMap(scenario, quantity, path)
    if path is not None:
        check_suffix(checked_path(path, MAP), MAP)
    made.check()
    if path is not None and path.exists():
        earlier = StabilityMap.load(path) if is_map(path) and not overwrite else None
        asked = list(made.values), made.scenario.resolved()
        if earlier and (list(earlier.values), earlier.scenario.resolved()) == asked:
            if done := earlier.done:
                goes_on = "; it goes on" if done < made.status.size else ""
                notify(f"{printable(path)}: holds {counted(done, 'system')} of {made.status.size}{goes_on}")
            return earlier
        if not overwrite:
            keep_older_file(path, notify)
    return made


def _varied(name: str, given: Axis, alone: Scenario) -> tuple[str, Any]:
    """The path and the values of an axis, the first and the last of which are tried in a scenario. Raises InputError, which
    begins with ``--x`` or ``--y``."""
    key = ""
    listed: Any = ""
    with suppress(TypeError, LookupError):
        key, listed = given.partition("=")[::2] if isinstance(given, str) else (str(given[0]), list(given[1]))
    if not listed:
        raise InputError(f"--{name}: must be KEY=VALUES, as in bodies.1.a=0.9..1.1:400, got {given!a}")
    try:
        first = re.split(r"[.\[]", key)[0].strip()
        path = ".".join(keys_of(key.strip() if first in Scenario.model_fields else f"initial.{key.strip()}"))
        values: Any = range_of(listed)
    except ValueError as error:
        raise InputError(f"--{name} {key}: {error}") from None
    if values is None:
        values = listed = read_assignment(f"{path}=[{listed}]", f"--{name}")[1] if isinstance(listed, str) else listed
    for k in (0, -1):
        check_initial(alone.override([f"{path}={values[k]}"], by=f"--{name}"))
    return path, listed
