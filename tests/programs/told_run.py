"""``nbody run`` that tells what it is doing on standard error, line by line."""

import sys
from contextlib import contextmanager

import nbody.cli.progress as shown
from nbody.cli import main


@contextmanager
def bar(hidden=False):
    yield lambda now: print("doing", now.doing, now.fraction, file=sys.stderr, flush=True)


shown.progress_bar = bar
sys.exit(main(["run", *sys.argv[1:]]))
