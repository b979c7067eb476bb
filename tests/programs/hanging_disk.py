"""A command whose disk hangs for a minute when it confirms the third frame."""

import sys
import time

from nbody.cli import main
from nbody.trajectory.writing.framefile import FrameFile

sync = FrameFile.sync


def hang(file):
    if file.commit["frames"][0] > 2:
        print("hanging", flush=True)
        time.sleep(60)
    sync(file)


FrameFile.sync = hang
sys.exit(main(sys.argv[1:]))
