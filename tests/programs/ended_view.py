"""A command whose window ends at step 8: ended_view.py close|keys|PID-of-the-screen ARGUMENTS."""

import gc
import os
import signal
import sys
import threading

from nbody.cli import main
from nbody.viewer.window.show import Desktop

_, end, *arguments = sys.argv


def press(widget):
    from PySide6.QtCore import QCoreApplication, QEvent, Qt
    from PySide6.QtGui import QKeyEvent

    for _ in range(20):
        key = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
        QCoreApplication.postEvent(widget, key)


def show(screen, source, clock, view, lost=None, real=Desktop.show):
    def opened(pane):
        from vispy import app

        def tick(event):
            if source.caption(clock.at).step < 8:
                return
            if end == "close":
                pane.close()
            elif end == "keys":
                press(pane.native)
                pane.timer.stop()
            else:
                os.kill(int(end), signal.SIGKILL)

        pane.timer = app.Timer(0.02, tick, start=True)

    gc.disable()
    real(screen, source, clock, view, lost, opened)
    collecting = threading.Thread(target=gc.collect)
    collecting.start()
    collecting.join()


Desktop.show = show
sys.exit(main(arguments))
