"""Draws a frame without a screen and saves the picture."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nbody.errors import InputError
from nbody.output_file import FileKind, checked_path, new_file
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.camera import Camera, Size
from nbody.viewer.sources.source import Source
from nbody.whole_file import Notify

SMALLEST, LARGEST = 16, 16384  # limits of a picture's sides in pixels; OpenGL may allow less

PICTURE = FileKind("PNG picture", "", "give another name", b"\x89PNG", "output/run.png")
SCREENSHOT = replace(PICTURE, begin="--screenshot ")  # the option's


def picture_size(given: str | Sequence[int]) -> Size:
    """Width and height in pixels, of which each may be given, or both as ``1280x720``. Raises InputError."""
    try:
        width, height = map(int, given.lower().replace("×", "x").split("x") if isinstance(given, str) else given)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"--size {given}: is not a size; write it as 1280x720") from None
    if not all(SMALLEST <= side <= LARGEST for side in (width, height)):
        raise InputError(f"--size {given}: sides are {SMALLEST} to {LARGEST} pixels")
    return width, height


def check_picture(path: Path, overwrite: bool = False) -> Path:
    """``path``, if a picture can be written there. Raises InputError if it is no .png, also at the end of a link, its folder
    is missing, or as :func:`nbody.output_file.checked_path`."""
    target = checked_path(path, SCREENSHOT if overwrite else replace(SCREENSHOT, signature=b""))  # any file is kept
    for each in (path, target):
        if each.suffix.lower() != ".png":
            led = "" if each == path else f"leads to {each}; "
            raise InputError(f"--screenshot {path}: {led}pictures are PNG files; give it a name that ends in .png")
    if not target.parent.is_dir():
        raise InputError(f"--screenshot {path}: there is no folder {target.parent}; make it first")
    return path


def draw_frame(
    source: Source, at: float, size: Size, with_hud: bool = True, look: Look = Look(), camera: Camera | None = None
) -> np.ndarray:
    """The moment ``at``, counted in frames, as ``camera`` sees it (by default the view of the run): (height, width, RGB)
    uint8. Raises DeviceError and InputError as :class:`~nbody.viewer.gl.studio.Studio` does."""
    from nbody.viewer import backends

    backends.use_screenless()
    from nbody.viewer.gl.studio import Studio

    with Studio(source, size, look) as studio:
        studio.draw(at, camera, with_hud)
        return studio.read()


def save_picture(picture: np.ndarray, path: Path, overwrite: bool = False, notify: Notify = lambda line: None) -> None:
    """Write ``picture`` as a PNG, whole or not at all; an older file keeps a numbered name unless ``overwrite``. Raises
    InputError if it can't be written, RunFailed if the disk is full or fails."""
    from PIL import Image

    with new_file(path, PICTURE, overwrite, notify) as draft:
        Image.fromarray(picture).save(draft, format="PNG")
