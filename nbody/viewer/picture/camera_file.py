"""A camera as a few lines of YAML, in the scenario's unit of length and degrees::

    centre: [0, 0, 0]
    radius: 3.3
    azimuth: -60
    elevation: 25

Every key may be left out, and then keeps the value of the initial view.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

import numpy as np

from nbody.errors import InputError, printable, unknown
from nbody.scenario.source import open_regular
from nbody.scenario.yaml_reader import dump, read_text
from nbody.viewer.picture.camera import Camera

KEYS = ("centre", "radius", "azimuth", "elevation")

LARGEST = 1_000_000
"""The maximum size of the file in bytes."""


def read_camera(path: Path, initial: Camera, length_unit: float) -> Camera:
    """``initial``, with the values in the file ``path``. ``length_unit`` is that of the source.

    Raises:
        InputError: no such file, not YAML, an unknown key, or a value out of range.
    """
    values = read_keys(path, "--camera", "a key of the window (V) writes such a file")
    return set_keys(initial, values, length_unit, f"{printable(path)}: ")


def read_keys(path: Path, option: str, hint: str) -> Mapping[str, object]:
    """The values in the file of an option. Raises InputError as :func:`read_camera`; the line ends with ``hint``."""
    with open_regular(path, f"{option} ") as file:
        data = file.read(LARGEST)
    try:
        return read_text(data.decode("utf-8-sig"), printable(path), path.parent).values
    except UnicodeDecodeError:
        raise InputError(f"{option} {printable(path)}: is no text; {hint}") from None


def set_keys(camera: Camera, keys: Mapping[str, object], length_unit: float, where: str = "") -> Camera:
    """A copy of ``camera`` with the values of ``keys``. Raises InputError, which begins with ``where``."""
    made = camera.copy()
    for key, value in keys.items():
        if key not in KEYS:
            raise InputError(f"{where}{unknown('key', str(key), KEYS)}")
        if key == "centre":
            made.centre = _centre(value, where) / length_unit
        elif not is_number(value) or (key == "radius" and value <= 0) or (key == "elevation" and abs(value) > 90):
            limits = {"radius": " greater than 0", "elevation": " from -90 to 90"}.get(key, "")
            raise InputError(f"{where}{key}: must be a number{limits}, got {str(value)[:40]}")
        elif key == "radius":
            made.radius = float(value) / length_unit
        else:
            setattr(made, key, float(np.radians(value)))
    return made


def _centre(value: object, where: str) -> np.ndarray:
    if not (isinstance(value, list) and len(value) in (2, 3) and all(map(is_number, value))):
        raise InputError(f"{where}centre: must be [x, y] or [x, y, z], got {str(value)[:40]}")
    return np.array([*map(float, value), 0.0][:3])


def is_number(value: object) -> TypeGuard[float]:
    """True for a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def camera_text(camera: Camera, length_unit: float) -> str:
    """The text of a file that :func:`read_camera` reads back, to six digits."""
    *centre, radius = (float(f"{x * length_unit:.6g}") for x in (*camera.centre, camera.radius))
    keys: dict[str, object] = {"centre": centre, "radius": radius}
    if not camera.flat:
        azimuth = (np.degrees(camera.azimuth) + 180) % 360 - 180
        keys |= {"azimuth": round(float(azimuth), 3), "elevation": round(float(np.degrees(camera.elevation)), 3)}
    return dump(keys)
