"""Views in YAML, in the scenario's unit of length and degrees: one, or a path of them for a movie::

    centre: [0, 0, 0]           views:
    radius: 3.3                   - {at: 0, azimuth: -60, elevation: 25}
    azimuth: -60                  - {at: 4, radius: 0.5, azimuth: 30}
    elevation: 25                 - {at: 6, centre: [1, 0, 0], radius: 0.2}

Every key may be left out, and then keeps the value of the initial view. ``at`` is a second of the movie. Each value goes
smoothly through those of the views that give it, without overshooting, and rests before the first and after the last. A file
with one view (the key V of the window writes it) holds the camera of a movie still.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

import numpy as np

from nbody.errors import InputError, printable, unknown
from nbody.input_file import open_regular
from nbody.scenario.yaml_reader import dump, read_text
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.frames import Array

Values = Callable[[float], Array]  # a value (or three) at a second of the movie

KEYS = ("centre", "radius", "azimuth", "elevation")

LARGEST = 1_000_000  # the maximum size of the file in bytes


def read_camera(path: Path, initial: Camera, length_unit: float) -> Camera:
    """``initial``, with the values in the file ``path``. ``length_unit`` is that of the source. Raises InputError: no such
    file, not YAML, an unknown key, or a value out of range."""
    values = _read(path, "--camera", "a key of the window (V) writes such a file")
    return _changed(initial, values, length_unit, f"{printable(path)}: ")


def _read(path: Path, option: str, hint: str) -> Mapping[str, object]:
    """The values in the file of an option; an error ends with ``hint``."""
    with open_regular(path, f"{option} ") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise InputError(f"{option} {printable(path)}: is larger than 1 MB; {hint}")
    try:
        return read_text(data.decode("utf-8-sig"), printable(path), path.parent).values
    except UnicodeDecodeError:
        raise InputError(f"{option} {printable(path)}: is no text; {hint}") from None


def _changed(camera: Camera, keys: Mapping[str, object], length_unit: float, where: str) -> Camera:
    """A copy of ``camera`` with the values of ``keys``; an error begins with ``where``."""
    made = camera.copy()
    for key, value in keys.items():
        if key not in KEYS:
            raise InputError(f"{where}{unknown('key', str(key), KEYS)}")
        if key == "centre":
            made.centre = _centre(value, where) / length_unit
        elif not _is_number(value) or (key == "radius" and value <= 0) or (key == "elevation" and abs(value) > 90):
            limits = {"radius": " greater than 0", "elevation": " from -90 to 90"}.get(key, "")
            raise InputError(f"{where}{key}: must be a number{limits}, got {str(value)[:40]}")
        elif key == "radius":
            made.radius = float(value) / length_unit
        else:
            setattr(made, key, float(np.radians(value)))
    return made


def _centre(value: object, where: str) -> Array:
    if not (isinstance(value, list) and len(value) in (2, 3) and all(map(_is_number, value))):
        raise InputError(f"{where}centre: must be [x, y] or [x, y, z], got {str(value)[:40]}")
    return np.array([*map(float, value), 0.0][:3])


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def camera_text(camera: Camera, length_unit: float) -> str:
    """The text of a file that :func:`read_camera` reads back, to six digits."""
    *centre, radius = (float(f"{x * length_unit:.6g}") for x in (*camera.centre, camera.radius))
    keys: dict[str, object] = {"centre": centre, "radius": radius}
    if not camera.flat:
        azimuth = (np.degrees(camera.azimuth) + 180) % 360 - 180
        keys |= {"azimuth": round(float(azimuth), 3), "elevation": round(float(np.degrees(camera.elevation)), 3)}
    return dump(keys)


@dataclass(frozen=True)
class CameraMove:
    """The camera at each second of a movie.

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
    """The path of the file ``path``; ``home`` and ``length_unit`` are those of the source. Raises InputError as
    :func:`read_camera`, and for times that do not increase."""
    values, name = _read(path, "--path", "write a list of views, as 'nbody movie --help' shows"), printable(path)
    if values and set(values) <= set(KEYS):  # one view, as the window saves it
        values = {"views": [{"at": 0, **values}]}
    given = values.get("views")
    if not isinstance(given, list) or not given or set(values) != {"views"}:
        raise InputError(f"{name}: must have one key 'views' with a list of views, such as {{at: 0, radius: 3}}")
    views = [_view(view, f"{name}: view {number}: ", home, length_unit) for number, view in enumerate(given, 1)]
    if any(after <= before for (before, _), (after, _) in pairwise(views)):
        raise InputError(f"{name}: the times 'at' must increase from view to view")
    known = {key: [(at, values[key]) for at, values in views if key in values] for key in KEYS}
    return {key: _curve(*map(np.asarray, zip(*points, strict=True))) for key, points in known.items() if points}


def _view(view: object, where: str, home: Camera, length_unit: float) -> tuple[float, dict[str, Array]]:
    """The time of a view of a path, and its values as curves go through them."""
    if not isinstance(view, dict):
        raise InputError(f"{where}must have keys, as {{at: 0, radius: 3}}")
    at = view.get("at")
    if not _is_number(at):
        raise InputError(f"{where}at: must be a number of seconds, got {str(at)[:40]}")
    keys = {key: value for key, value in view.items() if key != "at"}
    camera = _changed(home, keys, length_unit, where)
    values = {key: getattr(camera, key) for key in KEYS if key in keys}
    if "radius" in values:
        values["radius"] = np.log(values["radius"])
    return float(at), values


def _curve(times: Array, values: Array) -> Values:
    """The monotone cubic through ``values`` (Fritsch and Carlson 1980); constant outside."""
    if len(times) == 1:
        return lambda seconds: values[0]
    from scipy.interpolate import PchipInterpolator

    curve = PchipInterpolator(times, values)
    return lambda seconds: curve(np.clip(seconds, times[0], times[-1]))
