"""Whether pictures can be drawn, with and without a screen, and movies encoded."""

import os
from importlib.util import find_spec
from typing import Any

from nbody import child, install, opengl
from nbody.doctor.finding import Finding, good, missing
from nbody.errors import printable, shortened


def pictures() -> Finding:
    """Pictures and movies without a screen."""
    found = opengl.screenless()
    if found.renderer:
        text = f"OpenGL without a screen: {found.renderer}, {found.version}"
        return good("pictures", text, renderer=found.renderer, version=found.version)
    packages = opengl.missing_packages(opengl.SCREENLESS) or [opengl.MESA]
    text = f"no OpenGL without a screen ({found.problem})"
    absent = install.missing_package(ImportError(found.problem))  # in the child process
    remedy = install.pip_install("vispy") if absent else f"apt install {' '.join(packages)}"
    return missing("pictures", text, remedy, renderer=None)


def window() -> Finding:
    """The viewer's window: Qt, the libraries it loads, and a screen."""
    packages = opengl.missing_packages(opengl.SCREENLESS | opengl.WINDOW)
    screen = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY") or ""
    absent = [] if find_spec("PySide6") else [install.install_extra("view")]
    absent += [f"apt install {' '.join(packages)}"] if packages else []
    facts: dict[str, Any] = {"qt": bool(find_spec("PySide6")), "missing_packages": packages, "screen": screen}
    if absent:
        return missing("window", "a window can't be opened", "; ".join(absent), **facts)
    if not screen:
        return missing("window", "Qt is complete, but there is no screen (DISPLAY is not set)", **facts)
    return good("window", f"Qt and its libraries are installed, the screen is {screen}", **facts)


_ASK_INTEROP = """
from nbody.viewer import backends
backends.use_screenless()
from vispy import app
canvas = app.Canvas(size=(16, 16), show=False)
canvas.set_current()
from nbody.viewer.sources.device_frames import shared_buffers
print("answer:", shared_buffers()[1])
"""


def interop() -> Finding:
    """Whether positions go from the GPU's memory to pictures directly. Asked in a child process, as for OpenGL."""
    from nbody import compute

    topic, begin = "interop", "positions of a live run on the GPU"
    if compute.why_unavailable():
        return missing(topic, "no GPU computes, so a live run is drawn from host memory", interop=False, reason="no GPU")
    answers, failure = child.ask(_ASK_INTEROP, opengl.TIMEOUT)
    problem = shortened(printable(answers[0]), 150) if answers else failure
    if problem:
        remedy = "let NVIDIA's OpenGL draw: install its EGL or GLX library"
        return missing(topic, f"{begin} pass through the host ({problem})", remedy, interop=False, reason=problem)
    return good(topic, f"{begin} go to OpenGL without the host", interop=True, reason="")


def movies() -> Finding:
    """The encoder of MP4 files."""
    try:
        import av

        av.codec.Codec("libx264", "w")
    except (ImportError, OSError, ValueError) as error:
        remedy = f"{install.install_extra('movie')}; .gif, .webp and .png need nothing else"
        return missing("movies", f"no H.264 for .mp4 ({error})", remedy, pyav=None)
    return good("movies", f"H.264 by PyAV {av.__version__}; GIF, WebP and PNG by Pillow", pyav=av.__version__)


def notebook() -> Finding:
    """The interactive canvas of a notebook."""
    if find_spec("jupyter_rfb"):
        return good("notebook", "nbody.show gives an interactive canvas", jupyter_rfb=True)
    text = "nbody.show makes a movie in the page; an interactive canvas needs jupyter_rfb"
    return missing("notebook", text, install.install_extra("notebook"), jupyter_rfb=False)
