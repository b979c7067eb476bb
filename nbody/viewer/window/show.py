"""Opens the window."""

import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from nbody.run.signals import stop_on_signals
from nbody.viewer import backends
from nbody.viewer.picture.aim import Display
from nbody.viewer.sources.source import Source
from nbody.viewer.window.clock import Playback

if TYPE_CHECKING:
    from nbody.viewer.window.canvas import Window


class Desktop:
    """A window on this machine's screen: one of the ways to show a run.

    Attributes:
        option: of the command line.
    """

    option = "--view"

    def check(self) -> None:
        """Load what a window needs, before anything is computed. Raises DeviceError if none can be opened."""
        backends.use_window()
        import nbody.viewer.window.canvas  # noqa: F401

    def show(
        self,
        source: Source,
        transport: Playback,
        view: Display = Display(),
        lost: Callable[[], int] | None = None,
        opened: Callable[["Window"], object] = lambda window: None,
    ) -> None:
        """Show moments of ``source`` by the clock ``transport`` until the user closes the window; then close both.

        Args:
            lost: called when the screen is gone (its X server has ended), with the clock and the source closed. Then the
                process ends with the exit code that it returns, because Qt and Xlib can't go on. Without it a line is
                printed.
            opened: called with the window once it is on the screen.

        Raises:
            DeviceError: no window can be opened on this machine.
            InputError: a wrong camera file, or no such body to follow.
            KeyboardInterrupt: Ctrl-C (or SIGTERM, or a lost terminal) closed the window.
        """
        self.check()
        import shiboken6
        from vispy import app

        from nbody.viewer.window.canvas import Window

        def end() -> None:
            """End the process, as Qt is about to do."""
            code = 1
            try:
                transport.close()
                source.close()
                if lost is None:
                    print("error: the screen is gone, and the window with it", file=sys.stderr, flush=True)
                else:
                    code = lost()
            finally:
                os._exit(code)

        with backends.without_screen(end):
            try:
                window = Window(source, transport, view)
                window.show()
                opened(window)
                with stop_on_signals() as window.stop:  # Qt drops an exception of a handler
                    app.run()
            finally:
                transport.close()
                source.close()
            failure, stopped = window.failure, window.stop.requested
            shiboken6.delete(window.native)  # before its OpenGL context: Python's garbage collector knows no order
            del window
            gc.collect()  # a run that goes on may collect Qt's objects on its thread, and Qt aborts then
        if isinstance(failure, RuntimeError):  # vispy's type for errors of OpenGL
            raise backends.no_window(failure) from failure
        if failure:
            raise failure
        if stopped:
            raise KeyboardInterrupt
