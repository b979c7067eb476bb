"""``nbody view FILE``, interrupted when its window is open."""

import os
import signal
import sys

from nbody.cli import main
from nbody.viewer.window import show as window


def show(recording, playback, view, real=window.show, **options):
    def opened(_):
        from vispy import app

        opened.timer = app.Timer(0.05, lambda event: os.kill(os.getpid(), signal.SIGINT), iterations=1, start=True)

    real(recording, playback, view, opened, **options)


window.show = show
sys.exit(main(["view", sys.argv[1]]))
