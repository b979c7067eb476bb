"""Shows a simulation while it computes: ``nbody view SCENARIO`` and ``nbody run … --view``."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from nbody.cli.streams import flush, print_message
from nbody.errors import DeviceError, NBodyError
from nbody.viewer.sources.history import MEMORY
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.cli.options import Served
    from nbody.run.live import LiveRun
    from nbody.run.progress import Summary
    from nbody.scenario import Scenario
    from nbody.viewer.picture.aim import Display
    from nbody.viewer.web.show import Page
    from nbody.viewer.window.show import Desktop

    Screen = Desktop | Page


def view_scenario(
    settings: "Scenario", output: Path, overwrite: bool, view: "Display", screen: "Screen", memory: float = MEMORY
) -> int:
    """Compute and show a scenario until the window is closed; ``output`` is what its key for recording writes, and
    ``memory`` the bytes for earlier pictures."""
    from nbody.run.live import LiveRun

    screen.check()  # before anything is computed
    run = LiveRun(settings, output, overwrite=overwrite, notify=print_message)
    try:
        _show(run, memory, view, screen)
    finally:
        run.close()
    if run.failure is not None:
        raise run.failure
    return 0


def run_in_view(
    settings: "Scenario", output: Path, overwrite: bool, notify: Notify, quiet: bool, as_json: bool, served: "Served"
) -> int:
    """Run and record a scenario as ``nbody run`` does, and show it; return the exit code. The run goes on when the window is
    closed, or lost with its screen."""
    from nbody.cli.progress import progress_bar
    from nbody.cli.summary import show_summary
    from nbody.run.live import LiveRun
    from nbody.viewer import backends
    from nbody.viewer.picture.aim import Display

    screen = served.screen()
    try:
        screen.check()
    except DeviceError as error:
        problem = str(error).split(f"; {backends.INSTEAD}")[0].split(f"; or {backends.INSTEAD}")[0]
        option = screen.option
        raise DeviceError(f"{option}: {problem}; leave {option} out to run without a window") from error
    with ExitStack() as bar:
        run = LiveRun(settings, output, True, overwrite, notify, bar.enter_context(progress_bar(hidden=quiet)))

        def go_on_without_screen() -> int:
            """The rest of the command, called inside Qt before the process ends; returns the exit code."""
            try:
                notify("the screen is gone; the run goes on without its window, Ctrl-C stops it")
                summary = _awaited(run)
                bar.close()
                return show_summary(summary, as_json, quiet)
            except NBodyError as error:
                bar.close()
                print_message(f"error: {error}")
                return error.exit_code
            except KeyboardInterrupt:
                return 130
            finally:
                flush()

        try:
            _show(run, served.bytes, Display(), screen, goes_on=True, lost=go_on_without_screen)
            if run.thread.is_alive():
                notify("the window is closed, the run goes on; Ctrl-C stops it")
        except KeyboardInterrupt:
            run.stop()
        except BaseException:
            run.close()
            raise
        return show_summary(_awaited(run), as_json, quiet)


def _awaited(run: "LiveRun") -> "Summary":
    summary = run.wait()
    if summary is None:
        raise KeyboardInterrupt
    return summary


def _show(
    run: "LiveRun",
    memory: float,
    view: "Display",
    screen: "Screen",
    goes_on: bool = False,
    lost: Callable[[], int] | None = None,
) -> None:
    from nbody.viewer.sources.live import Live
    from nbody.viewer.window.live_clock import LiveClock

    source = Live(run, memory)
    screen.show(source, LiveClock(source, detach=goes_on), view, lost)
