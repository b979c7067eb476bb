"""Checks whether this machine can draw, without a screen (EGL) and in a window (Qt), and which packages are missing.

A broken OpenGL driver can crash the process that creates a context, so a child process creates it.
"""

import ctypes
import os
from dataclasses import dataclass

from nbody import child

SCREENLESS = {"libEGL.so.1": "libegl1", "libGL.so.1": "libgl1", "libfontconfig.so.1": "libfontconfig1"}
"""Libraries that are needed to draw without a screen, and their Debian packages."""

MESA = "libgl1-mesa-dri"  # the Debian package of the EGL drivers, including software rendering

WINDOW = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libglib-2.0.so.0": "libglib2.0-0",
}
"""Libraries that Qt's X11 plugin loads, and their Debian packages; Qt aborts if one is missing."""

TIMEOUT = 20.0  # seconds to wait for a context. Usually it takes half a second, including the import of vispy

_ASK = """
import vispy
vispy.use("egl", gl="gl2")
from vispy import app
from vispy.gloo import gl
canvas = app.Canvas(size=(16, 16), show=False)
canvas.set_current()
for name in (gl.GL_RENDERER, gl.GL_VERSION):
    print("answer:", gl.glGetParameter(name))
"""


@dataclass(frozen=True)
class Renderer:
    """The OpenGL renderer without a screen; or, if ``renderer`` is empty, the reason why there is none."""

    renderer: str = ""
    version: str = ""
    problem: str = ""


def screenless() -> Renderer:
    """Create an OpenGL context through EGL in a child process and report its renderer."""
    platform = os.environ.get("EGL_PLATFORM", "surfaceless")
    answers, problem = child.ask(_ASK, TIMEOUT, EGL_PLATFORM=platform)
    return Renderer(problem=problem) if problem else Renderer(*answers)


def missing_packages(libraries: dict[str, str]) -> list[str]:
    """The Debian packages of the libraries that can't be loaded."""
    return [package for name, package in libraries.items() if not _loads(name)]


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
