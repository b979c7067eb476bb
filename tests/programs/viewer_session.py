"""A user's session with the viewer's window, typed and dragged by Qt's synthetic events.

    python tests/programs/viewer_session.py RUN.h5 FOLDER

Prints one JSON object: the playback and the camera after each act; what the window then showed is FOLDER/<act>.png.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from nbody.trajectory import Trajectory
from nbody.viewer.sources.recording import RecordedSource
from nbody.viewer.window.clock import Playback
from nbody.viewer.window.show import Desktop


def acts(window):
    """(name, action) in order, and what must have happened after some of them."""
    from PySide6.QtCore import QPoint, Qt
    from PySide6.QtTest import QTest

    pane, left, none = window.native, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier

    def key(name, modifier=none):
        return lambda: QTest.keyClick(pane, getattr(Qt.Key, f"Key_{name}"), modifier)

    def drag():
        QTest.mousePress(pane, left, none, QPoint(300, 200))
        for x in (320, 360, 400):
            QTest.mouseMove(pane, QPoint(x, 200))
        QTest.mouseRelease(pane, left, none, QPoint(400, 200))

    def click_timeline():
        bar = window._timeline()
        QTest.mouseClick(pane, left, none, QPoint(bar.left + bar.width // 2, bar.top + bar.height // 2))

    def click_body():
        """Click on the body that is nearest to a place without text."""
        pixels = window.controls.camera.project(window.renderer.moment.positions(), window.size)
        row = int(np.hypot(*(pixels - (700, 400)).T).argmin())
        print(row, file=sys.stderr)
        QTest.mouseClick(pane, left, none, QPoint(*np.rint(pixels[row]).astype(int).tolist()))

    def drawn():
        """True when the diagrams show all points: later ones would change a picture."""
        diagrams = window.panels.diagrams
        return diagrams.drawn and diagrams._begun[1] and diagrams._future is None

    def went_back():
        return window.transport.at < window.transport.frames - 1

    yield "played", lambda: None
    yield "paused", key("Space")
    yield "home", key("Home")
    yield "right", key("Right")
    yield "ten", key("Right", Qt.KeyboardModifier.ShiftModifier)
    yield "dragged", drag
    yield "clicked", click_timeline
    yield "end", key("End")
    yield "bare", key("H")
    yield "shown", key("H")
    yield "chosen", click_body
    yield "followed", key("F")
    yield "moved", key("Home")
    yield "centre", key("F")
    yield "diagrams", key("P")
    yield "drawn", lambda: None, drawn
    yield "earlier", key("Right", Qt.KeyboardModifier.ShiftModifier)
    yield "keys", key("F1")
    yield "saved", lambda: (key("F1")(), key("S")())
    yield "viewed", key("V")
    yield "backward", lambda: (key("End")(), key("B")()), went_back
    yield "small", lambda: setattr(window, "size", (500, 400)), lambda: window.physical_size == (500, 400)
    yield "quit", key("Q")


def drive(window):
    """Begin the session: an act, and the next one when a picture has been drawn that will not change any more."""
    from PySide6.QtCore import QTimer

    todo, seen = acts(window), {}
    state = {"name": "", "happened": lambda: True, "pictures": 0, "since": time.monotonic()}

    def count(event):
        state["pictures"] += 1

    def settled():
        renderer, clock = window.renderer, window.transport
        if not state["pictures"] or not state["happened"]() or window.source.waiting(clock.at):
            return False
        return clock.playing or not renderer.has_newer

    def late():
        return time.monotonic() > state["since"] + 60  # then the test says what has not happened

    def go_on():
        if not (settled() or late()):
            return
        if state["name"]:
            playback, camera = window.transport, window.controls.camera
            # fmt: off
            seen[state["name"]] = {
                "frame": int(playback.at), "playing": playback.playing, "azimuth": camera.azimuth,
                "centre": camera.centre.tolist(), "chosen": window.controls.chosen, "follow": window.controls.follow,
                "status": window.transport.status, "notice": state["notice"],
            }
            if window.controls.chosen is not None:
                row = window.controls.chosen
                place = window.renderer.moment.positions(row)
                seen[state["name"]] |= {
                    "body": place.tolist(), "pixel": camera.project(place[None], window.size)[0].tolist(),
                }
            # fmt: on
            window.native.grabFramebuffer().save(str(folder / f"{state['name']}.png"))
        name, act, *happened = next(todo)
        state.update(name=name, pictures=0, since=time.monotonic(), happened=happened[0] if happened else lambda: True)
        if name == "quit":
            timer.stop()
            print(json.dumps(seen), flush=True)
        act()
        state["notice"] = window.notice  # kept here: the window shows it for some seconds only
        window.update()

    window.events.draw.connect(count)
    timer = QTimer(window.native)
    timer.timeout.connect(go_on)
    timer.start(20)


folder = Path(sys.argv[2])
with Trajectory(sys.argv[1]) as run:
    recording = RecordedSource(run)
    Desktop().show(recording, Playback(recording.frames), opened=drive)
