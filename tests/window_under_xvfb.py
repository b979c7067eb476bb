"""Opens the viewer's window on the screen DISPLAY names, types and drags as a user would, and reports what happened.

    python tests/window_under_xvfb.py RUN.h5 FOLDER

The window is driven by Qt's own synthetic events; what is saved is what the X server shows. Prints one JSON object.
"""

import json
import sys
from pathlib import Path

from nbody.trajectory import Trajectory
from nbody.viewer import window

path, folder = sys.argv[1], Path(sys.argv[2])
report = {}


def drive(canvas):
    """The user's session: a list of (name, action), one every 300 ms, each followed by a grab of the screen."""
    from PySide6.QtCore import QPoint, Qt, QTimer
    from PySide6.QtGui import QGuiApplication
    from PySide6.QtTest import QTest

    native = canvas.native

    def key(name, modifier=Qt.KeyboardModifier.NoModifier):
        return lambda: QTest.keyClick(native, getattr(Qt.Key, f"Key_{name}"), modifier)

    def drag():
        middle = QPoint(native.width() // 2, native.height() // 2)
        QTest.mousePress(native, Qt.MouseButton.LeftButton, pos=middle)
        for k in range(1, 6):
            QTest.mouseMove(native, middle + QPoint(20 * k, 5 * k))
        QTest.mouseRelease(native, Qt.MouseButton.LeftButton, pos=middle + QPoint(100, 25))

    def click_timeline():
        QTest.mouseClick(native, Qt.MouseButton.LeftButton, pos=QPoint(native.width() // 2, native.height() - 18))

    session = [
        ("played", lambda: None), ("paused", key("Space")), ("home", key("Home")), ("right", key("Right")),
        ("ten", key("Right", Qt.KeyboardModifier.ShiftModifier)), ("dragged", drag), ("timeline", click_timeline),
        ("bare", key("H")), ("end", key("End")),
    ]  # fmt: skip

    def look(name):
        """Note the state after an action, and what the screen shows."""
        camera = canvas.camera
        report[name] = {
            "frame": canvas.playback.frame,
            "playing": canvas.playback.playing,
            "camera": [camera.azimuth, *camera.centre],
        }
        QGuiApplication.primaryScreen().grabWindow(0).save(str(folder / f"{name}.png"))

    def step():
        if not session:
            canvas.close()
            QGuiApplication.quit()
            return
        name, action = session.pop(0)
        action()
        QTimer.singleShot(300, lambda: (look(name), step()))

    QTimer.singleShot(1000, step)


with Trajectory(path) as run:
    window.show(run, size=(640, 480), ready=drive)
print(json.dumps(report))
