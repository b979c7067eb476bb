"""``nbody view FILE``, interrupted when its window is open."""

import os
import signal
import sys

from nbody.cli import main
from nbody.viewer.window.show import Desktop


def show(screen, recording, playback, view, lost=None, real=Desktop.show):
    def opened(_):
        from vispy import app

        opened.timer = app.Timer(0.05, lambda event: os.kill(os.getpid(), signal.SIGINT), iterations=1, start=True)

    real(screen, recording, playback, view, lost, opened)


Desktop.show = show
sys.exit(main(["view", sys.argv[1]]))
