"""A command whose disk hangs for ten minutes when it confirms the third frame; it says what Ctrl-C does."""

import os
import sys
import time

from nbody.cli import main
from nbody.run.recorder import Recorder
from nbody.run.signals import StopRequest
from nbody.trajectory.writing.framefile import FrameFile

sync = FrameFile.sync


def hang(file):
    if file.commit["frames"][0] > 2:
        print("hanging", flush=True)
        time.sleep(600)
    sync(file)


def hear(request, number, frame, handle=StopRequest.handle):
    handle(request, number, frame)
    os.write(1, b"stopping\n")


def abandon(recorder, abandon=Recorder.abandon):
    os.write(1, b"waiting\n")
    abandon(recorder)


FrameFile.sync, StopRequest.handle, Recorder.abandon = hang, hear, abandon
sys.exit(main(sys.argv[1:]))
