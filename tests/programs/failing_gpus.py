"""Runs on simulated GPUs of which one fails, in a launch and in a wait; prints exit codes."""

import contextlib
import json
import shutil
import time

from nbody.cli import main
from nbody.compute.gpu import failures, peers, waiting
from nbody.errors import NBodyError
from nbody.forces.direct.gpu_tiled import TiledEngine
from nbody.forces.transports import gpus as layer
from nbody.trajectory import read_checkpoint

peers.device_count, peers._kind = (lambda: 3), (lambda number: "a card")
TiledEngine.can = TiledEngine.can._replace(divided_from=1)
error = type("CudaAPIError", (Exception,), {"__module__": "numba.cuda.cudadrv.driver"})("[700] Call to cuX results in Y")
options = ["--engine", "gpu-tiled", "--precision", "float64", "-n", "9", "--steps", "3", "--every", "1", "-q"]


def wait_for_checkpoint(path):
    """Return when the file, which another thread writes, holds one."""
    for _ in range(2000):
        time.sleep(0.01)
        with contextlib.suppress(OSError, NBodyError, KeyError):
            read_checkpoint(shutil.copy(path, "copy.h5"))
            return


def failing(function, number, calls, path):
    calls = iter(range(calls))

    def wrapped(*arguments):
        if (number is None or arguments[0].number == number) and next(calls, None) is None:
            wait_for_checkpoint(path)
            failures.status = lambda device: "[999] unspecified" if device == 1 else ""
            with arguments[0].current() if number else contextlib.nullcontext():
                raise error
        return function(*arguments)

    return wrapped


codes = [main(["run", "plummer", *options, "--gpus", "3", "-o", "whole.h5"])]
for room, name, number, gpus, others in (
    (layer.HelpingGpu, "read", 1, "3", "0,2"),
    (waiting, "is_done", None, "2", "0,"),
):
    path, whole = f"{name}.h5", getattr(room, name)
    setattr(room, name, failing(whole, number, 2, path))
    codes.append(main(["run", "plummer", *options, "--gpus", gpus, "-o", path]))
    setattr(room, name, whole)
    failures.status = lambda device: ""
    codes += [main(["resume", path, "--gpus", others, "-q"]), main(["diff", "whole.h5", path])]
print(json.dumps(codes))
