"""Ctrl-C and SIGTERM at random moments of real runs: each must stop at once, with a file that opens and goes on.

    python tests/crash/signals.py [COUNT]

Starts ``nbody run`` COUNT times (300 by default), sends one signal, and counts what should never happen: an exit code
other than 130 (unless the run was done first), a file that does not open or has a damaged frame, a run that took more
than two seconds to stop, a resumed run whose bits differ from those of one that was never interrupted (every tenth).
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nbody.repeat import resume
from nbody.trajectory import Trajectory, first_difference

SCENARIO = """
initial: {generator: plummer, particles: 512, seed: 5}
gravity: {softening: plummer, length: 0.05}
integrator: {dt: 0.001, steps: 3000}
engine: cpu
record: {every: 50}
"""
PATIENCE = 2.0


def main(count: int) -> int:
    """Run, interrupt, look; returns how many things went wrong."""
    rng = random.Random(1)
    wrong, interrupted, compared = [], 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run.yaml").write_text(SCENARIO)
        command = [sys.executable, "-m", "nbody", "run", "run.yaml", "--quiet", "-o"]
        environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
        subprocess.run([*command, "whole.h5"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        for k in range(count):
            path = folder / f"{k}.h5"
            run = subprocess.Popen([*command, path.name], cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            while not path.exists() and run.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.5))
            number = rng.choice((signal.SIGINT, signal.SIGTERM))
            sent = time.perf_counter()
            run.send_signal(number)
            code = run.wait(timeout=60)
            seconds = time.perf_counter() - sent
            interrupted += code == 130
            with Trajectory(path) as recording:
                stopped_well = code == 130 or recording.complete  # a signal after the end may kill what is done
                if not stopped_well or seconds > PATIENCE:
                    wrong.append(f"{k}: {number.name}: exit {code} after {seconds:.2f} s")
                if damage := recording.verify():
                    wrong.append(f"{k}: {damage[0]}")
            if k % 10 == 0 and code == 130:
                resume(path, notify=wrong.append).run()
                compared += 1
                if difference := first_difference(folder / "whole.h5", path):
                    wrong.append(f"{k}: resumed, {difference}")
            path.unlink()
    print(f"{count} runs, {interrupted} interrupted, {compared} resumed and compared, {len(wrong)} wrong")
    print("\n".join(wrong[:20]))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)))
