"""``nbody view``: plays a recorded run in a window, or saves one of its frames as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.completion import RECORDINGS, SCENARIOS, files
from nbody.cli.numbers import between, count_option
from nbody.cli.streams import result


def view(
    run: Annotated[
        Path,
        typer.Argument(
            help="A recording (.h5) made by 'nbody run'.", show_default=False, autocompletion=files(*RECORDINGS)
        ),
    ],
    screenshot: Annotated[
        Path | None, typer.Option(help="Save a picture (.png) instead; no screen is needed.", show_default=False)
    ] = None,
    frame: Annotated[
        int | None,
        count_option("The frame to begin with, or of the picture (else the last); negative: from the end."),
    ] = None,
    size: Annotated[str, typer.Option(help="Width and height of the picture in pixels.")] = "1280x720",
    hud: Annotated[bool, typer.Option(help="Text on the picture.")] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing picture (else it is kept under a numbered name).")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Show new frames while the run goes on.")] = False,
    fps: Annotated[
        float, typer.Option(help="Frames shown per second.", parser=between(0.25, 480), metavar="<float>")
    ] = 30.0,
) -> int:
    """Play a recorded run in a window, or save a picture of one frame.

    Colours show speeds, from amber (slow) to blue (fast), on the same scale
    in every frame. In the window: Space plays and pauses, the arrow keys and
    the bar at the bottom choose the frame, dragging turns the view (in a
    plane: moves it), the wheel zooms; the window shows the other keys.

    Examples:

      nbody view output/run.h5

      nbody view output/run.h5 --follow

      nbody view output/run.h5 --screenshot disk.png --frame 9 --size 1920x1080
    """
    from nbody.cli.progress import say
    from nbody.errors import InputError

    if run.suffix.lower() in SCENARIOS:
        raise InputError(f"{run}: is a scenario; record it with 'nbody run {run}', then view the recording")
    from nbody.trajectory import Trajectory
    from nbody.viewer.sources.recording import Recording

    with Trajectory(run) as trajectory:
        recording = Recording(trajectory)
        if screenshot is not None:
            from nbody.viewer.screenshot import check_picture, draw_frame, parse_size, save_picture

            path, sides, k = (
                check_picture(screenshot, overwrite),
                parse_size(size),
                recording.index(-1 if frame is None else frame),
            )
            save_picture(draw_frame(recording, k, sides, hud), path, overwrite, say)
            result(f"{path}: frame {k} of 0 to {recording.frames - 1}, t = {trajectory.time[k]:.6g}")
            return 0
        from nbody.viewer.window.playback import Playback
        from nbody.viewer.window.show import show

        playback = Playback(recording.frames, fps, follow)
        if frame is not None or follow:
            playback.seek(recording.index(-1 if frame is None else frame))
        playback.playing = frame is None or follow
        show(recording, playback)
    return 0
