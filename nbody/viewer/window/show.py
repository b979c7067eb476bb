"""Opens the window."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from nbody.run.signals import stop_on_signals
from nbody.viewer import backends
from nbody.viewer.picture.aim import Aim
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.source import Source
from nbody.viewer.window.transport import Transport

if TYPE_CHECKING:
    from nbody.viewer.window.canvas import Window


def show(
    source: Source,
    transport: Transport,
    opened: Callable[["Window"], object] = lambda window: None,
    look: Look = Look(),
    aim: Aim = Aim(),
) -> None:
    """Open the window and show moments until the user closes it.

    Args:
        source: what to show.
        transport: the clock, which chooses the moment. Both are closed with the window.
        opened: called with the window once it is on the screen.
        look: how the bodies are drawn.
        aim: where the camera is at first, and what it follows.

    Raises:
        DeviceError: no window can be opened on this machine.
        InputError: a wrong camera file, or no such body to follow.
        KeyboardInterrupt: Ctrl-C (or SIGTERM, or a lost terminal) closed the window.
    """
    backends.use_window()
    from vispy import app

    from nbody.viewer.window.canvas import Window

    try:
        window = Window(source, transport, look, aim)
        window.show()
        opened(window)
        with stop_on_signals() as window.stop:  # Qt drops an exception of a handler
            app.run()
    finally:
        transport.close()
        source.close()
    if isinstance(window.failure, RuntimeError):  # vispy's type for errors of OpenGL
        raise backends.no_window(window.failure) from window.failure
    if window.failure:
        raise window.failure
    if window.stop.requested:
        raise KeyboardInterrupt
