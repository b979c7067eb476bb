"""Chooses OpenGL in a window or without a screen, or reports in one line what is missing and how to install it."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from nbody import install, opengl
from nbody.errors import DeviceError, last_line

INSTEAD = "'--screenshot OUT.png' or 'nbody plot' makes a picture without a screen"  # where no window can be opened


def use_screenless() -> None:
    """Choose OpenGL through EGL, which needs no screen. Raises DeviceError with the Debian packages that are missing."""
    os.environ.setdefault("EGL_PLATFORM", "surfaceless")
    _use("egl", no_screenless)


def _use(backend: str, failed: Callable[[BaseException], DeviceError]) -> None:
    try:
        import vispy
    except ImportError as error:
        raise DeviceError(install.missing_package(error) or f"vispy can't be imported ({error})") from error
    try:
        vispy.use(backend, gl="gl2")
    except (ImportError, RuntimeError, OSError) as error:
        raise failed(error) from error


def no_screenless(error: BaseException) -> DeviceError:
    """The error to show when EGL failed with ``error``."""
    packages = opengl.missing_packages(opengl.SCREENLESS)
    remedy = f"apt install {' '.join([*packages, opengl.MESA])}"
    return DeviceError(f"no OpenGL without a screen ({last_line(error, type(error).__name__)}); {remedy}, or the like")


def use_window() -> None:
    """Choose a Qt window. Raises DeviceError as :func:`check_window`."""
    check_window()
    # At each change of size Qt would share memory with the X server, by a file descriptor that libxcb loses now and then
    # when Xlib (GLX) uses the same connection: then the connection breaks. Pictures of OpenGL do not need it.
    os.environ.setdefault("QT_XCB_NO_MITSHM", "1")
    _use("pyside6", no_window)


def check_window() -> None:
    """Raise DeviceError if there is no screen, no Qt, or one of its libraries is missing: Qt itself would abort."""
    if not find_spec("PySide6"):
        raise DeviceError(f"a window needs PySide6: {install.install_extra('view')}; or {INSTEAD}")
    if sys.platform == "linux":
        _check_screen()


@contextmanager
def without_screen(end: Callable[[], object]) -> Iterator[None]:
    """Inside this block ``end`` is called when the connection to the screen breaks. It should not return: Qt, or Xlib, ends
    the process then."""
    from PySide6 import QtCore

    def handle(kind: Any, context: Any, message: str) -> None:
        if "connection broke" in message:
            end()
        elif earlier is not None:
            earlier(kind, context, message)

    earlier = QtCore.qInstallMessageHandler(handle)
    try:
        yield
    finally:
        QtCore.qInstallMessageHandler(earlier)


def no_window(error: BaseException) -> DeviceError:
    """The error to show when Qt or OpenGL failed with ``error``."""
    return DeviceError(f"a window can't be opened ({last_line(error, type(error).__name__)}); {INSTEAD}")


_answered: set[str] = set()  # the screens that have answered: a bare X server resets itself when its last client leaves


def _check_screen() -> None:
    x11, wayland = os.environ.get("DISPLAY"), os.environ.get("WAYLAND_DISPLAY")
    if not x11 and not wayland:
        raise DeviceError(f"there is no screen to open a window on; {INSTEAD}, or set DISPLAY")
    libraries = opengl.SCREENLESS | ({} if wayland else opengl.WINDOW)
    packages = opengl.missing_packages(libraries)
    if packages:
        raise DeviceError(f"a window needs system libraries: apt install {' '.join(packages)}; or {INSTEAD}")
    if x11 and not wayland and x11 not in _answered:
        xcb = ctypes.CDLL("libxcb.so.1")
        xcb.xcb_connect.restype = ctypes.c_void_p
        connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
        refused = xcb.xcb_connection_has_error(connection)
        xcb.xcb_disconnect(connection)
        if refused:
            raise DeviceError(f"the screen '{x11}' (DISPLAY) does not answer; {INSTEAD}, or set DISPLAY")
        _answered.add(x11)
