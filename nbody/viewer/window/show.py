"""Opens the window that plays a recording."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from nbody.run.signals import stop_on_signals
from nbody.viewer import backends
from nbody.viewer.sources.recording import Recording
from nbody.viewer.window.playback import Playback

if TYPE_CHECKING:
    from nbody.viewer.window.canvas import Window


def show(recording: Recording, playback: Playback, opened: Callable[["Window"], object] = lambda window: None) -> None:
    """Open the window and play until the user closes it.

    Args:
        recording: what to play.
        playback: the clock, which chooses the frame.
        opened: called with the window once it is on the screen.

    Raises:
        DeviceError: no window can be opened on this machine.
        KeyboardInterrupt: Ctrl-C (or SIGTERM, or a lost terminal) closed the window.
    """
    backends.use_window()
    from vispy import app

    from nbody.viewer.window.canvas import Window

    window = Window(recording, playback)
    window.show()
    opened(window)
    with stop_on_signals() as window.stop:  # Qt drops an exception of a handler
        app.run()
    if isinstance(window.failure, RuntimeError):  # vispy's type for errors of OpenGL
        raise backends.no_window(window.failure) from window.failure
    if window.failure:
        raise window.failure
    if window.stop.requested:
        raise KeyboardInterrupt
