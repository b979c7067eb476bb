"""``nbody movie``: makes a movie of a recording, or of a scenario that it runs first."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nbody.cli.groups import Replaced, grouped
from nbody.cli.options import (
    Overwrite,
    Quiet,
    RecordingOrScenario,
    argument,
    between,
    count_option,
    is_scenario,
    real_option,
    text_option,
)
from nbody.cli.streams import print_message, result
from nbody.cli.view import Viewpoint
from nbody.viewer.movie.film import MOVIE_FORMATS, Film, Writer, checked, moments
from nbody.viewer.picture.look import Look
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.viewer.picture.aim import Display
    from nbody.viewer.sources.recording import RecordedSource
    from nbody.viewer.sources.source import Array


@dataclass(frozen=True)
class Pictures:
    """Which pictures a movie has."""

    fps: Annotated[float, typer.Option(help="Pictures per second.", parser=between(1, 240), metavar="<float>")] = 30.0
    first: Annotated[int | None, count_option("The first frame to show; negative: from the end.", "--from")] = None
    last: Annotated[int | None, count_option("The last frame to show; before the first: backward.", "--to")] = None
    seconds: Annotated[float | None, real_option("Length (else one picture per frame).", "--seconds")] = None
    speed: Annotated[float | None, real_option("Or: units of the run's time per second.", "--speed")] = None
    spin: Annotated[float, real_option("Rotation of the view, in degrees per second.", "--spin")] = 0.0
    path: Annotated[str | None, text_option("Now --camera.", "--path", hidden=True)] = None
    followed: Annotated[str | None, text_option("Now --track.", "--follow", hidden=True)] = None

    def moments(self, recording: "RecordedSource") -> "Array":
        """The moments that they show, counted in frames."""
        first = recording.run.index(0 if self.first is None else self.first)
        last = recording.run.index(-1 if self.last is None else self.last)
        return moments(recording.run.time, first, last, self.fps, self.seconds, self.speed)

    def display(self, viewpoint: Viewpoint, look: Look) -> "Display":
        """How they show it, with the words of version 0.2 for ``--camera`` and ``--track``. Raises InputError."""
        moved: dict[str, Any] = {}
        for old, new, value in (("path", "camera", self.path), ("follow", "track", self.followed)):
            if value is not None:
                print_message(f"--{old}: is called --{new} now, as in 'nbody view'")
                moved[new] = value
        return replace(viewpoint, **moved).display(look)


@grouped
def movie(
    run: RecordingOrScenario,
    output: Annotated[Path, argument(f"The movie (or -o FILE); its suffix is .{', .'.join(MOVIE_FORMATS)}.")],
    pictures: Pictures = Pictures(),
    viewpoint: Viewpoint = Viewpoint(),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    *,
    replaced: Replaced,
    look: Look = Look(),
) -> int:
    """Make a movie of a recording, or of a scenario, without a screen.

    Each frame becomes one picture, as the window shows it. With --seconds or
    --speed there may be more pictures than frames: positions in between are
    interpolated from positions and velocities. Ctrl-C leaves a movie that can
    be played.

    The file of --camera has one view, or several at seconds of the movie, along
    which the camera moves:

      views:
        - {at: 0, azimuth: -60, elevation: 25}
        - {at: 4, radius: 0.5, azimuth: 30}

    \b
    Examples:
      nbody movie output/run.h5 disk.mp4
      nbody movie plummer cluster.mp4 --particles 4096 --seconds 20 --spin 18
      nbody movie output/run.h5 small.webp --size 480x300 --fps 15 --from 100
      nbody movie output/run.h5 flight.mp4 --camera views.yaml --color density
    """
    from nbody.cli.progress import fraction_bar, messages
    from nbody.run.signals import stop_on_signals
    from nbody.trajectory import Trajectory
    from nbody.viewer import backends
    from nbody.viewer.sources.recording import RecordedSource

    shown = pictures.display(viewpoint, look)
    inputs = [run, Path(shown.aim.camera)]
    film = checked(Film(output, shown.size, pictures.fps, 1), overwrite, inputs)
    with (
        messages(quiet) as notify,
        _recorded(run, film.path.parent, replaced, notify, quiet) as file,
        Trajectory(file) as trajectory,
        closing(RecordedSource(trajectory, notify)) as recording,
    ):
        moments = pictures.moments(recording)
        camera_at = shown.aim.moving(recording, pictures.spin)
        film = checked(replace(film, pictures=len(moments)), overwrite, inputs)
        backends.use_screenless()
        from nbody.viewer.gl.studio import Studio
        from nbody.viewer.movie.make import make_movie  # (imports OpenGL, which has been chosen now)

        with Studio(recording, film.size, look) as studio:
            started = time.perf_counter()
            with stop_on_signals() as stop, Writer(film, overwrite, notify) as writer, fraction_bar(quiet) as show:

                def progress(made: int) -> None:
                    rate = made / (time.perf_counter() - started)
                    show(made / film.pictures, f"picture {made}/{film.pictures}  {rate:.3g} per second")

                make_movie(studio, moments, camera_at, writer, shown.hud, progress, lambda: stop.requested)
            _report(replace(film, path=output), writer.pictures, time.perf_counter() - started, quiet)
    return 0


def _report(film: Film, made: int, took: float, quiet: bool) -> None:
    """Print what was made, if it is not ``quiet``. Raises KeyboardInterrupt if pictures are missing."""
    from nbody.number_format import size

    if made < film.pictures:
        left = f"{film.path} has {made} of {film.pictures} pictures" if made else "no movie was made"
        raise KeyboardInterrupt(f"interrupted: {left}")
    if quiet:
        return
    on_disk = size(sum(path.stat().st_size for path in {film.file(number) for number in range(made)}))
    result(
        f"{film.path}: {made} pictures of {film.size[0]}x{film.size[1]}, {made / film.fps:.4g} s, "
        f"{on_disk}, made in {took:.3g} s ({made / took:.3g} per second)"
    )


@contextmanager
def _recorded(run: Path, folder: Path, replaced: Replaced, notify: Notify, quiet: bool) -> Iterator[Path]:
    """The recording to show; of a scenario a temporary one in ``folder``."""
    if not is_scenario(run):
        replaced.refuse(run)
        yield run
        return
    from nbody.cli.progress import run_with_bar
    from nbody.run.simulation import Simulation
    from nbody.scenario.packaged import locate

    def unresumable(line: str) -> None:
        if not line.startswith("interrupted "):  # the file that could be resumed is a temporary one
            notify(line)

    scenario = replaced.load(locate(run, notify))
    with TemporaryDirectory(prefix=".nbody-movie-", dir=folder) as temporary:
        file = Path(temporary, "run.h5")
        summary = run_with_bar(Simulation(scenario, file, notify=unresumable), quiet)
        if summary.interrupted:
            raise KeyboardInterrupt(f"interrupted at step {summary.step}, before the first picture; no movie was made")
        yield file
