"""A command whose window ends at step 8, for which the run waits: ended_view.py close|keys|PID-of-the-screen ARGUMENTS."""

import gc
import os
import signal
import sys
import threading
import time

from nbody.cli import main
from nbody.run.live import LiveRun
from nbody.run.simulation import Simulation
from nbody.viewer.window.show import Desktop

_, end, *arguments = sys.argv
gone = threading.Event()


def waiting(make=Simulation.__init__):
    def slow(self, *given, **options):
        make(self, *given, **options)
        compute = self.setup.engine._compute

        def wait(state, outputs):
            while self.steps_made >= 8 and not gone.is_set():
                time.sleep(0.01)
                state.progress.report(0)
            compute(state, outputs)

        self.setup.engine._compute = wait

    Simulation.__init__ = slow


def then_go_on(method):
    """The method; the run goes on as soon as it is called."""

    def called(self):
        gone.set()
        return method(self)

    return called


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
            if not source.run.prepared or source.run.simulation.steps_made < 8:
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
# The command calls them after it has said what happens to the run.
LiveRun.wait, LiveRun.close = then_go_on(LiveRun.wait), then_go_on(LiveRun.close)
waiting()
sys.exit(main(arguments))
