"""Shows a simulation while it computes: ``nbody view SCENARIO`` and ``nbody run … --view``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nbody.cli.streams import tell
from nbody.errors import DeviceError, InputError

if TYPE_CHECKING:
    from nbody.run.live import LiveRun
    from nbody.run.progress import Progress, Summary
    from nbody.scenario import Scenario
    from nbody.viewer.picture.aim import Aim
    from nbody.viewer.picture.look import Look


def view_scenario(settings: "Scenario", output: Path, overwrite: bool, look: "Look", aim: "Aim") -> int:
    """Compute and show a scenario until the window is closed; ``output`` is what its key for recording writes."""
    from nbody.run.live import LiveRun
    from nbody.viewer import backends

    backends.check_window()  # before anything is computed
    run = LiveRun(settings, output, overwrite=overwrite, notify=tell)
    try:
        _load_window()
        _show(run, look, aim)
    finally:
        run.close()
    if run.failure is not None:
        raise run.failure
    return 0


def run_in_view(
    settings: "Scenario",
    output: Path,
    overwrite: bool,
    notify: Callable[[str], None],
    progress: Callable[["Progress"], None],
) -> "Summary":
    """Run and record a scenario as ``nbody run`` does, and show it. The run goes on when the window is closed."""
    from nbody.run.live import LiveRun
    from nbody.viewer import backends
    from nbody.viewer.picture.aim import Aim
    from nbody.viewer.picture.look import Look

    try:
        backends.check_window()
    except DeviceError as error:
        problem = str(error).split(f"; {backends.INSTEAD}")[0].split(f"; or {backends.INSTEAD}")[0]
        raise DeviceError(f"--view: {problem}; leave --view out to run without a window") from error
    run = LiveRun(settings, output, True, overwrite, notify, progress)
    try:
        _load_window()
        _show(run, Look(), Aim(), goes_on=True)
        if run.thread.is_alive():
            notify("the window is closed, the run goes on; Ctrl-C stops it")
    except KeyboardInterrupt:
        run.stop()
    except BaseException:
        run.close()
        raise
    summary = run.wait()
    if summary is None:
        raise KeyboardInterrupt
    return summary


def _load_window() -> None:
    """Load what a window needs, while the run's thread makes the simulation."""
    from nbody.viewer import backends

    backends.use_window()
    import nbody.viewer.window.canvas  # noqa: F401


def _show(run: "LiveRun", look: "Look", aim: "Aim", goes_on: bool = False) -> None:
    from nbody.viewer.sources.live import Live
    from nbody.viewer.window.live_clock import LiveClock
    from nbody.viewer.window.show import show

    source = Live(run)
    show(source, LiveClock(source, let_go=goes_on), look=look, aim=aim)


def refuse_options_of_recordings(path: Path, **given: bool) -> None:
    """Raise an InputError for an option that needs a recording, where ``path`` is a scenario."""
    for name, is_given in given.items():
        if is_given:
            raise InputError(f"--{name}: is for recordings, and {path} is a scenario; record it with 'nbody run' first")
