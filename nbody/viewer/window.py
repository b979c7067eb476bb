"""A window on a screen, by Qt."""

import os
import sys
from collections.abc import Callable
from typing import Any

from nbody.errors import DeviceError
from nbody.trajectory import Trajectory

QT_PACKAGES = "libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-image0 libxcb-render-util0 libxkbcommon-x11-0"
"""What Debian and Ubuntu call the libraries without which Qt aborts instead of opening a window."""


def show(
    run: Trajectory,
    follow: bool = False,
    size: tuple[int, int] = (1280, 800),
    ready: Callable[[Any], None] = lambda canvas: None,
) -> None:
    """Open a window that plays the run, and return when it is closed. ``ready`` gets the canvas once it is open.

    Raises:
        DeviceError: there is no screen, no PySide6, or a library that it needs is missing.
    """
    check_screen()
    import vispy

    try:
        vispy.use("pyside6", gl="gl2")
    except Exception as error:
        raise DeviceError(
            "a window needs PySide6, and it can't be loaded here "
            f"({' '.join(str(error).split())[:120]}); pip install 'nbody[view]', or use --screenshot"
        ) from error
    from vispy import app

    from nbody.viewer.canvas import RunCanvas

    canvas = RunCanvas(run, follow=follow, size=size, show=True)
    canvas.timer.start()
    ready(canvas)
    app.run()


def check_screen() -> None:
    """Raise a DeviceError if there is no screen, or if a library is missing whose lack makes Qt abort."""
    if not sys.platform.startswith("linux") or os.environ.get("WAYLAND_DISPLAY"):
        return
    if not os.environ.get("DISPLAY"):
        raise DeviceError(
            "there is no screen here (DISPLAY is not set); draw a frame with --screenshot OUT.png, "
            "or set DISPLAY to an X server"
        )
    from ctypes import CDLL

    for library in ("libxcb-cursor.so.0", "libxcb-icccm.so.4", "libxcb-keysyms.so.1", "libxkbcommon-x11.so.0"):
        try:
            CDLL(library)
        except OSError as error:
            raise DeviceError(
                f"a window needs {library}, which is missing here; on Debian or Ubuntu: apt install {QT_PACKAGES}"
            ) from error
