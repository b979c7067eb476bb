"""Shows runs in notebooks: on an interactive canvas, or as a movie in the page."""

import base64
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nbody.errors import InputError
from nbody.given import path_text
from nbody.run.simulation import Simulation
from nbody.trajectory import Trajectory
from nbody.viewer import backends
from nbody.viewer.picture.aim import Aim
from nbody.viewer.picture.look import Look
from nbody.viewer.screenshot import picture_size
from nbody.viewer.sources.recording import RecordedSource

if TYPE_CHECKING:
    from nbody.viewer.window.page import PageCanvas

SIZE = (720, 450)
FPS, LONGEST = 25.0, 8.0  # of the movie in the page: pictures per second, and seconds. A longer run is shown faster


def show(
    run: "str | Path | Trajectory | Simulation", size: str | Sequence[int] = SIZE, **look: Any
) -> "PageCanvas | PageMovie":
    """Show a run in a notebook: return this as the last value of a cell.

    The result is an interactive canvas if jupyter_rfb is installed (the extra ``notebook``): it plays, and keys and mouse do
    what they do in the window of ``nbody view``. Else it is a movie in the page: MP4 with PyAV (extra ``movie``), or WebP.

    Args:
        run: a recording or its path; or a simulation, which is run to the end of its scenario if it has no frames yet.
        size: width and height on the page in pixels, as in (720, 450) or "720x450".
        look: options of ``nbody view`` by their names, such as ``color="density"``.

    Raises:
        InputError: not a recording, a wrong option, or a run with one frame.
        DeviceError: no OpenGL without a screen.
    """
    chosen, size = Look.of(look), picture_size(size)
    if wrong := set(look) - set(vars(chosen)):
        raise InputError(f"show: unknown option '{min(wrong)}'; one of: {', '.join(vars(chosen))}")
    temporary: TemporaryDirectory | None = None
    if isinstance(run, Simulation):
        run, temporary = _recorded(run)
    path = run.path if isinstance(run, Trajectory) else path_text(run)
    if not find_spec("jupyter_rfb"):
        return movie(path, size, chosen)
    backends.use_screenless()
    from nbody.viewer.window.page import PageCanvas

    trajectory = Trajectory(path)  # its own: the canvas lives longer than the cell

    def close() -> None:
        trajectory.close()
        if temporary is not None:
            temporary.cleanup()

    return PageCanvas(RecordedSource(trajectory), size, chosen, close)


def _recorded(simulation: Simulation) -> tuple[Path, TemporaryDirectory | None]:
    """The recording of a simulation, and the folder that has to be kept with it."""
    if simulation.output is not None:
        if not simulation.frames:
            simulation.run()
        return Path(simulation.output), None
    if simulation.steps_made:
        raise InputError("this simulation was not recorded; make it with output='run.h5', or show it before it runs")
    temporary = TemporaryDirectory(prefix="nbody-")
    path = Path(temporary.name, "run.h5")
    Simulation(simulation.scenario, path, particles=simulation.particles).run()
    return path, temporary


@dataclass(frozen=True)
class PageMovie:
    """A movie that a notebook shows: the file, its MIME type, and its width and height in pixels."""

    data: bytes
    kind: str
    size: tuple[int, int]

    def _repr_html_(self) -> str:
        source = f"data:{self.kind};base64,{base64.b64encode(self.data).decode()}"
        width, height = self.size
        if self.kind.startswith("image/"):
            return f'<img width="{width}" height="{height}" src="{source}">'
        return f'<video width="{width}" height="{height}" controls autoplay loop muted src="{source}"></video>'


def movie(path: str, size: tuple[int, int], look: Look) -> PageMovie:
    """A movie of the recording ``path`` for a page, across damaged frames. Raises as :func:`show`."""
    from nbody.viewer.movie.film import Film, Writer, checked, moments

    backends.use_screenless()
    from nbody.viewer.gl.studio import Studio
    from nbody.viewer.movie.make import make_movie

    suffix, kind = ("mp4", "video/mp4") if find_spec("av") else ("webp", "image/webp")
    size = (size[0] // 2 * 2, size[1] // 2 * 2)
    with Trajectory(path) as trajectory, closing(RecordedSource(trajectory, lambda line: None)) as recording:
        seconds = LONGEST if recording.frames > LONGEST * FPS else None
        shown = moments(trajectory.time, 0, recording.frames - 1, FPS, seconds)
        with TemporaryDirectory(prefix="nbody-") as folder, Studio(recording, size, look) as studio:
            film = checked(Film(Path(folder, f"run.{suffix}"), size, FPS, len(shown)))
            with Writer(film) as writer:
                make_movie(studio, shown, Aim().moving(recording), writer)
            return PageMovie(film.path.read_bytes(), kind, size)
