"""``nbody view``: play a run in a window, or draw one frame of it."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.errors import InputError


def view(
    run: Annotated[Path, typer.Argument(help="The recording, an .h5 file of 'nbody run'.", show_default=False)],
    screenshot: Annotated[
        Path | None, typer.Option(help="Draw one frame to this PNG instead of opening a window.", show_default=False)
    ] = None,
    frame: Annotated[int, typer.Option(help="Which frame to draw; negative ones count from the end.")] = -1,
    size: Annotated[str, typer.Option(help="Width and height in pixels.")] = "1280x720",
    hud: Annotated[bool, typer.Option("--hud/--no-hud", help="Text and timeline over the picture.")] = True,
    follow: Annotated[bool, typer.Option("--follow", help="Look for new frames while the run goes on.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing PNG (else it is kept under a numbered name).")
    ] = False,
) -> None:
    """Play a recorded run: space pauses, arrows step, the mouse turns and zooms; 'h' hides the text.

    Colours are speeds, from red (slow) to blue (fast), on one scale for the whole run.

    Examples:

      nbody view output/run.h5

      nbody view output/run.h5 --follow

      nbody view output/run.h5 --screenshot disk.png --frame 10 --size 1920x1080 --no-hud
    """
    if run.suffix.lower() in (".yaml", ".yml"):
        raise InputError(f"{run}: is a scenario; make a recording of it first: nbody run {run}")
    pixels = _size(size)
    from nbody.cli.progress import say
    from nbody.trajectory import Trajectory

    with Trajectory(run) as recording:
        if not len(recording):
            raise InputError(f"{run}: holds no frame yet; wait for the first one")
        if screenshot is None:
            from nbody.viewer.window import show

            show(recording, follow, pixels)
            return
        from nbody.trajectory.place import check_output, keep
        from nbody.viewer.screenshot import screenshot as draw

        target = check_output(screenshot)
        part = target.with_name(f".{target.name}.part")
        try:
            draw(recording, part, frame, pixels, hud)
            if not overwrite:
                keep(target, say)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _size(text: str) -> tuple[int, int]:
    """(width, height) from ``1280x720``."""
    try:
        width, height = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InputError(f"--size: '{text}' is not a size; write WIDTHxHEIGHT, as in 1280x720") from None
    if not (16 <= width <= 16384 and 16 <= height <= 16384):
        raise InputError(f"--size: {width}x{height} is out of range; each is from 16 to 16384")
    return width, height
