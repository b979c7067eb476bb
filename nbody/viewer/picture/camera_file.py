"""Views in YAML, in the scenario's unit of length and degrees: one, or a path of them for a movie::

    centre: [0, 0, 0]           views:
    radius: 3.3                   - {at: 0, azimuth: -60, elevation: 25}
    azimuth: -60                  - {at: 4, radius: 0.5, azimuth: 30}
    elevation: 25                 - {at: 6, centre: [1, 0, 0], radius: 0.2}

Every key may be left out, and then keeps the value of the initial view. ``at`` is a second of the movie. Each value goes
smoothly through those of the views that give it, without overshooting, and rests before the first and after the last. A file
with one view (the key V of the window writes it) holds the camera of a movie still. A window begins with the first view.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeGuard

import numpy as np

from nbody.errors import InputError, printable, unknown
from nbody.input_file import open_regular
from nbody.output_file import FileKind, new_file
from nbody.scenario.yaml_reader import dump, read_text
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.frames import Array

Values = Callable[[float], Array]  # a value (or three) at a second of the movie
Views = Callable[[Camera, float], Camera]  # the initial view at a second of the movie

KEYS = ("centre", "radius", "azimuth", "elevation")

CAMERA = FileKind("camera", "", "give another name", b"", "camera.yaml")
LARGEST = 1_000_000  # the maximum size of the file in bytes


def _centre(value: object, where: str) -> Array:
    if not (isinstance(value, list) and len(value) in (2, 3) and all(map(_is_number, value))):
        raise InputError(f"{where}centre: must be [x, y] or [x, y, z], got {str(value)[:40]}")
    return np.array([*map(float, value), 0.0][:3])


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def save_camera(camera: Camera, length_unit: float, path: Path) -> None:
    """Write a file that :func:`read_path` reads back, to six digits; an older one keeps a numbered name."""
    *centre, radius = (float(f"{x * length_unit:.6g}") for x in (*camera.centre, camera.radius))
    keys: dict[str, object] = {"centre": centre, "radius": radius}
    if not camera.flat:
        azimuth = (np.degrees(camera.azimuth) + 180) % 360 - 180
        keys |= {"azimuth": round(float(azimuth), 3), "elevation": round(float(np.degrees(camera.elevation)), 3)}
    with new_file(path, CAMERA, False, lambda line: None) as draft:
        draft.write_text(dump(keys), encoding="utf-8")


def read_path(path: Path, length_unit: float) -> Views:
    """The way along the views of a file, in the picture's units; ``length_unit`` is that of the source. Raises
    InputError: no such file, not YAML, an unknown key, a value out of range, or times that do not increase."""
    name, hint = printable(path), "the key V of a window writes such a file"
    with open_regular(path, "--camera ") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise InputError(f"--camera {name}: is larger than 1 MB; {hint}")
    try:
        values = read_text(data.decode("utf-8-sig"), name, path.parent).values
    except UnicodeDecodeError:
        raise InputError(f"--camera {name}: is no text; {hint}") from None
    given = values.get("views", [{"at": 0, **values}])  # one view, as the window saves it
    if not isinstance(given, list) or not given or ("views" in values and len(values) > 1):
        raise InputError(f"{name}: must have one key 'views' with a list of views, such as {{at: 0, radius: 3}}")
    known: dict[str, list[tuple[float, Array]]] = {}
    before = -np.inf
    for number, view in enumerate(given, 1):
        at, found = _view(view, f"{name}: view {number}: " if "views" in values else f"{name}: ", length_unit)
        if at <= before:
            raise InputError(f"{name}: the times 'at' must increase from view to view")
        before = at
        for key, value in found.items():
            known.setdefault(key, []).append((at, value))
    curves = {key: _curve(*map(np.asarray, zip(*points, strict=True))) for key, points in known.items()}

    def along(home: Camera, seconds: float) -> Camera:
        camera = home.copy()
        for key, curve in curves.items():
            value = curve(seconds)
            setattr(camera, key, value if key == "centre" else float(np.exp(value) if key == "radius" else value))
        return camera

    return along


def _view(view: object, where: str, length_unit: float) -> tuple[float, dict[str, Array]]:
    """The time of a view of a path, and its values as curves go through them; an error begins with ``where``."""
    if not isinstance(view, dict):
        raise InputError(f"{where}must have keys, as {{at: 0, radius: 3}}")
    if not _is_number(at := view.get("at")):
        raise InputError(f"{where}at: must be a number of seconds, got {str(at)[:40]}")
    found: dict[str, Array] = {}
    for key, value in view.items():
        if key == "centre":
            found[key] = _centre(value, where) / length_unit
        elif key in KEYS:
            if not _is_number(value) or (key == "radius" and value <= 0) or (key == "elevation" and abs(value) > 90):
                limits = {"radius": " greater than 0", "elevation": " from -90 to 90"}.get(key, "")
                raise InputError(f"{where}{key}: must be a number{limits}, got {str(value)[:40]}")
            found[key] = np.asarray(np.log(value / length_unit) if key == "radius" else np.radians(value))
        elif key != "at":
            raise InputError(f"{where}{unknown('key', str(key), KEYS)}")
    return float(at), found


def _curve(times: Array, values: Array) -> Values:
    """The monotone cubic through ``values`` (Fritsch and Carlson 1980); constant outside."""
    if len(times) == 1:
        return lambda seconds: values[0]
    from scipy.interpolate import PchipInterpolator

    curve = PchipInterpolator(times, values)
    return lambda seconds: curve(np.clip(seconds, times[0], times[-1]))
