"""One frame as a PNG, without a screen: OpenGL through EGL, in software where there is no graphics card."""

import os
from pathlib import Path

import numpy as np

from nbody.errors import DeviceError, InputError
from nbody.trajectory import Trajectory

EGL_PACKAGES = "libegl1 libgl1-mesa-dri"
"""What Debian and Ubuntu call the libraries that drawing without a screen needs."""


def screenshot(
    run: Trajectory, target: Path, frame: int = -1, size: tuple[int, int] = (1280, 720), hud: bool = True
) -> None:
    """Draw frame ``frame`` (from the end if negative) of a run to the PNG ``target``, ``size`` = (width, height).

    Raises:
        InputError: no such frame, or the picture can't be written.
        DeviceError: OpenGL can't be had without a screen here.
    """
    try:
        k = run.index(frame)
    except IndexError as error:
        raise InputError(str(error)) from None
    pixels = picture(run, k, size, hud)
    from PIL import Image

    try:
        Image.fromarray(pixels).save(target, format="PNG")
    except OSError as error:
        raise InputError(f"{target}: can't be written ({error.strerror or error}); give another name") from error


def picture(run: Trajectory, k: int, size: tuple[int, int], hud: bool = True) -> np.ndarray:
    """Frame ``k`` as (height, width, 3) uint8."""
    use_egl()
    from nbody.viewer.canvas import RunCanvas

    canvas = RunCanvas(run, hud=hud, size=size, show=False)
    try:
        canvas.playback.seek(k)
        return np.ascontiguousarray(canvas.render(alpha=False)[..., :3])
    finally:
        canvas.close()


def use_egl() -> None:
    """Have vispy draw without a screen. Raises DeviceError if EGL is missing."""
    os.environ.setdefault("EGL_PLATFORM", "surfaceless")
    import vispy

    try:
        vispy.use("egl", gl="gl2")
    except Exception as error:
        raise DeviceError(
            f"drawing without a screen needs EGL, and it can't be used here ({' '.join(str(error).split())[:120]}); "
            f"on Debian or Ubuntu: apt install {EGL_PACKAGES}"
        ) from error
