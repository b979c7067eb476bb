"""Ctrl-C and SIGTERM at random moments of ``nbody run``: each must stop at once, with a file that opens and goes on.

    python tests/crash/signals.py [COUNT] [--engine E] [--particles N] [--steps N] [--workers W] [--seconds S]

What should never happen: an exit code other than 130 (unless the run was done first, or the signal came before the
command had begun its run), a file that does not open or has a damaged frame, a run that takes more than two seconds
to stop, a resumed run (every fifth) whose bits differ from those of one that was never interrupted.
"""

import os
import random
import signal
import time
from collections import Counter

import commands
from commands import Bench

TIMEOUT = 2.0


def interrupt(bench: Bench, seen: Counter) -> None:
    """One run, interrupted: now and then while it starts, mostly while it records."""
    seen["runs"] += 1
    child = bench.begin_run()
    early = random.random() < 0.1
    if early:
        bench.wait_for_file(child, seconds=random.uniform(0, bench.starting))
    elif bench.wait_for_file(child):
        time.sleep(random.uniform(0, bench.recording))
    number = random.choice((signal.SIGINT, signal.SIGTERM))
    sent = time.perf_counter()
    os.kill(child, number)
    code = commands.ended(child)
    seconds = time.perf_counter() - sent
    seen["slowest stop, in ms"] = max(seen["slowest stop, in ms"], round(1e3 * seconds))
    if not bench.path.exists():
        assert early and code in (130, -number), (code, bench.said())
        seen["before the file appeared"] += 1
        return
    found = bench.look()
    seen[f"{number.name}, exit {code}"] += 1
    assert code in (130, 0, -number), (code, bench.said())  # the last: it was done, and about to exit; so may be 130
    assert found["status"] == "complete" or (found["status"], code) == ("stopped", 130), (code, found["status"])
    assert seconds < TIMEOUT, seconds
    if found["status"] == "stopped" and random.random() < 0.2:
        assert commands.ended(bench.begin("resume", bench.path)) == 0, bench.said()
        bench.compare()
        seen["resumed to the same bits"] += 1
    else:
        bench.path.unlink()


if __name__ == "__main__":
    commands.script(interrupt, "runs", count=300)
