"""How the camera of a movie moves: at rest, turning, or along a path from a file.

A path is a YAML file with key views at seconds of the movie, in the scenario's unit of length and degrees::

    views:
      - {at: 0, azimuth: -60, elevation: 25}
      - {at: 4, radius: 0.5, azimuth: 30}
      - {at: 6, centre: [1, 0, 0], radius: 0.2}

Each value goes smoothly through those of the key views that give it, without overshooting, and rests before the first and
after the last; one that no view gives keeps that of the view of the run. A file with one view and no ``views`` (the key V of
the window writes it) holds the camera still.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from nbody.errors import InputError, printable
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.camera_file import KEYS, is_number, read_keys, set_keys

Array = np.ndarray
Values = Callable[[float], Array]
"""A value (or three) at a second of the movie."""


@dataclass(frozen=True)
class CameraMove:
    """The camera at each second of the movie.

    Attributes:
        home: the view at the start.
        spin: degrees per second by which it turns around the vertical axis.
        path: the values of a path, by key of a view: ``radius`` as its logarithm, angles in radians.
    """

    home: Camera
    spin: float = 0.0
    path: Mapping[str, Values] | None = None

    def __post_init__(self) -> None:
        if self.spin and self.home.flat:
            raise InputError(
                f"--spin {self.spin:g}: this run is in a plane and seen face on; there is nothing to turn around"
            )

    def at(self, seconds: float) -> Camera:
        """The view at ``seconds``."""
        camera = self.home.copy()
        for key, values in (self.path or {}).items():
            value = values(seconds)
            if key == "centre":
                camera.centre = value
            else:
                setattr(camera, key, float(np.exp(value) if key == "radius" else value))
        camera.azimuth += np.radians(self.spin) * seconds
        return camera


def read_path(path: Path, home: Camera, length_unit: float) -> dict[str, Values]:
    """The path of the file ``path``; ``home`` and ``length_unit`` are those of the source.

    Raises:
        InputError: no such file, not YAML, an unknown key, a value out of range, or times that do not increase.
    """
    values, name = read_keys(path, "--path", "write a list of views, as 'nbody movie --help' shows"), printable(path)
    if values and set(values) <= set(KEYS):  # one view, as the window saves it
        values = {"views": [{"at": 0, **values}]}
    views = values.get("views")
    if not isinstance(views, list) or not views or set(values) != {"views"}:
        raise InputError(f"{name}: must have one key 'views' with a list of views, such as {{at: 0, radius: 3}}")
    return _curves(
        [_view(view, f"{name}: view {number}: ", home, length_unit) for number, view in enumerate(views, 1)], name
    )


def _view(view: object, where: str, home: Camera, length_unit: float) -> tuple[float, dict[str, Array]]:
    """The time of a key view, and its values as curves go through them."""
    if not isinstance(view, dict):
        raise InputError(f"{where}must have keys, as {{at: 0, radius: 3}}")
    at = view.get("at")
    if not is_number(at):
        raise InputError(f"{where}at: must be a number of seconds, got {str(at)[:40]}")
    keys = {key: value for key, value in view.items() if key != "at"}
    camera = set_keys(home, keys, length_unit, where)
    values = {key: getattr(camera, key) for key in KEYS if key in keys}
    if "radius" in values:
        values["radius"] = np.log(values["radius"])
    return float(at), values


def _curves(views: list[tuple[float, dict[str, Array]]], name: str) -> dict[str, Values]:
    times = [at for at, _ in views]
    if any(after <= before for before, after in pairwise(times)):
        raise InputError(f"{name}: the times 'at' must increase from view to view")
    found = {}
    for key in KEYS:
        known = [(at, values[key]) for at, values in views if key in values]
        if known:
            found[key] = _curve(*map(np.asarray, zip(*known, strict=True)))
    return found


def _curve(times: Array, values: Array) -> Values:
    """The monotone cubic through ``values`` (Fritsch and Carlson 1980); constant outside."""
    if len(times) == 1:
        return lambda seconds: values[0]
    from scipy.interpolate import PchipInterpolator

    curve = PchipInterpolator(times, values)
    return lambda seconds: curve(np.clip(seconds, times[0], times[-1]))
