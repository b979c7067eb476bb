"""``nbody view``: plays a recorded run in a window, saves a picture of it, or shows a scenario while it computes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nbody.cli.completion import cameras
from nbody.cli.groups import Replaced, grouped
from nbody.cli.options import (
    Hud,
    Overwrite,
    RecordingOrScenario,
    Served,
    Size,
    between,
    count_option,
    is_scenario,
    text_option,
)
from nbody.cli.streams import print_message, result
from nbody.errors import InputError
from nbody.scenario.quantities import time_text
from nbody.trajectory.grid_file import is_map
from nbody.viewer.picture.look import Look

if TYPE_CHECKING:
    from nbody.viewer.picture.aim import Display
    from nbody.viewer.sources.recording import RecordedSource


@dataclass(frozen=True)
class Screenshot:
    """A picture of one frame, instead of a window."""

    screenshot: Annotated[Path | None, text_option("Save a picture (.png) instead; no screen is needed.")] = None
    frame: Annotated[
        int | None, count_option("The frame to begin with, or of the picture (else the last); negative: from the end.")
    ] = None


@dataclass(frozen=True)
class Playing:
    """How a recording is played."""

    follow: Annotated[bool, typer.Option("--follow", help="Show new frames while the run goes on.")] = False
    fps: Annotated[
        float | None, text_option("Frames shown per second [30].", parser=between(0.25, 480), metavar="<float>")
    ] = None


@dataclass(frozen=True)
class Viewpoint:
    """What the camera looks at, and the size of the picture."""

    camera: Annotated[
        str,
        typer.Option(
            help="One view for the whole run (run), one that frames the frame (frame), or a file (.yaml) with views, as the "
            "window's key V writes it.",
            autocompletion=cameras,
        ),
    ] = "run"
    track: Annotated[
        str, text_option("Keep a body (its id or name), the centre of a species, com or densest in the middle.")
    ] = ""
    size: Size = "1280x720"
    hud: Hud = True

    def display(self, look: Look) -> "Display":
        """How the run is shown. Raises InputError."""
        from nbody.viewer.picture.aim import Aim, Display
        from nbody.viewer.screenshot import picture_size

        return Display(look, Aim(self.camera, self.track), picture_size(self.size), self.hud)


@dataclass(frozen=True)
class Recorded:
    """What is written."""

    output: Annotated[
        Path | None,
        text_option("The recording of a scenario, made by a key; by default output/run.h5.", "--output", "-o"),
    ] = None
    overwrite: Overwrite = False


@grouped
def view(
    run: RecordingOrScenario,
    picture: Screenshot = Screenshot(),
    playing: Playing = Playing(),
    viewpoint: Viewpoint = Viewpoint(),
    served: Served = Served(),
    recorded: Recorded = Recorded(),
    *,
    replaced: Replaced,
    look: Look = Look(),
) -> int:
    """Play a recorded run, or compute and show a scenario, in a window or a browser; or save a picture of one frame.

    Of a map (nbody map) the window shows the picture; a click computes and shows that system.

    Colours show speeds, from amber (slow) to blue (fast), or another quantity
    (--color), on the same scale in every frame. In the window: Space plays and
    pauses, the arrow keys and the bar at the bottom choose the frame, dragging
    turns the view (in a plane: moves it), the wheel zooms; Y begins free flight
    (W A S D and the mouse); F1 shows the other keys.

    A scenario is computed while it is shown: Space pauses, the right arrow makes
    one step, up and down change the steps per picture, and a key starts and stops
    a recording. The left arrow, Home and the bar go back to earlier pictures and
    pause the run, which goes on at the newest one (End); Home at the first one
    starts the run again.

    \b
    Examples:
      nbody view output/run.h5
      nbody view disk --particles 5000 --dt 0.0001 --integrator leapfrog
      nbody view output/run.h5 --follow
      nbody view output/run.h5 --web --port 8080
      nbody view output/run.h5 --screenshot disk.png --frame 9 --size 1920x1080
      nbody view output/run.h5 --color density --map viridis --scale-bar
      nbody view output/run.h5 --camera disk-camera.yaml --track densest
      nbody view output/run.h5 --trails 0,3 --axes --background print
    """
    if is_map(run):
        from nbody.maps.stability_map import StabilityMap
        from nbody.viewer.window.map_window import show_map

        if served.web:
            raise InputError(f"--web: {run} is a map, which only a window shows; or draw it with 'nbody plot {run}'")
        if picture.screenshot is not None:
            raise InputError(f"--screenshot: {run} is a map; draw it with 'nbody plot {run} -o map.png'")
        show_map(StabilityMap.load(run))
        return 0
    shown, screen = viewpoint.display(look), served.screen()
    if is_scenario(run):
        from nbody.cli.live import view_scenario
        from nbody.scenario.packaged import locate

        given = {**vars(picture), **vars(playing), "follow": playing.follow or None}
        path = recorded.output or Path("output/run.h5")
        for option, value in given.items():
            if value is not None:
                again = f"nbody view {path} --{option}" + ("" if value is True else f" {value}")
                raise InputError(f"--{option}: is for recordings; record it: nbody run {run} -o {path}, then: {again}")
        settings = replaced.load(locate(run, print_message))
        return view_scenario(settings, path, recorded.overwrite, shown, screen, served.bytes)
    Replaced(replaced | ({"output": recorded.output} if recorded.output else {})).refuse(run)
    from nbody.trajectory import Trajectory
    from nbody.viewer.sources.recording import RecordedSource

    with Trajectory(run) as trajectory:
        recording = RecordedSource(trajectory, memory=served.bytes)
        if picture.screenshot is not None:
            for option in ("follow", "fps", "web"):
                if getattr(served if option == "web" else playing, option):
                    raise InputError(f"--{option}: is for the window, and --screenshot saves a picture; leave it out")
            return _save(picture, recording, recorded.overwrite, shown)
        from nbody.viewer.window.clock import Playback

        playback = Playback(recording.frames, playing.fps or 30.0, playing.follow, recording)
        if picture.frame is not None or playing.follow:
            playback.seek(recording.run.index(-1 if picture.frame is None else picture.frame))
        playback.playing = picture.frame is None or playing.follow
        screen.check()
        screen.show(recording, playback, shown)
    return 0


def _save(picture: Screenshot, recording: "RecordedSource", overwrite: bool, view: "Display") -> int:
    """Save the picture of a frame; returns the exit code."""
    from nbody.viewer.screenshot import check_picture, draw_frame, save_picture

    assert picture.screenshot is not None
    path = check_picture(picture.screenshot, overwrite)
    k = recording.run.index(-1 if picture.frame is None else picture.frame)
    drawn = draw_frame(recording, k, view.size, view.hud, view.look, view.aim.view(recording, k))
    save_picture(drawn, path, overwrite, print_message)
    time = time_text(recording.run.time[k], recording.run.units.symbol("time"))
    result(f"{path}: frame {k} of 0 to {recording.frames - 1}, t = {time}")
    return 0
