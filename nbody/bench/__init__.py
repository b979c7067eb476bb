"""Benchmarks: speed and accuracy on this machine. Each result is checked before it is timed.

A suite is a folder, and a line in :data:`SUITES`. The folder has

``__init__``
    ``prepare(notify, *, …)``, which checks its options and returns a :data:`Measure`. Its docstring is the command's help,
    and its keyword arguments are the command's options (:mod:`nbody.cli.bench` knows their names). The module imports
    nothing heavy at the top.
``suite``
    ``measure(…)``, which makes the rows.
``tables``
    ``ROWS``: the classes of its rows, whose fields say how columns show them (:mod:`.row`). ``sheets(report)``: the tables
    for the terminal. ``picture(report)``: what :mod:`.plot` draws. ``PAGES``: the Markdown for each pair of markers in a
    README, empty if the report has no such rows.

The files of this folder are for all suites: :mod:`.timing` measures times, and :mod:`.report`, :mod:`.columns`,
:mod:`.compare` and :mod:`.readme` process the rows.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from nbody.registry import Entry, Registry
from nbody.whole_file import Notify as Notify

Measure = Callable[[Notify], Any]
"""What ``prepare`` returns: it measures, and gives a :class:`~nbody.bench.report.Report`."""

SUITES = Registry(
    "suite",
    {
        "forces": Entry("nbody.bench.forces:prepare", "every force engine, precision and N"),
        "roofline": Entry("nbody.bench.roofline:prepare", "the GPU's engines beside what the card allows"),
        "scaling": Entry("nbody.bench.scaling:prepare", "whole runs on one GPU, on two, and so on"),
        "integrators": Entry("nbody.bench.integrators:prepare", "every integrator: error against time"),
        "matmul": Entry("nbody.bench.matmul:prepare", "the ladder of matrix products, beside cuBLAS"),
    },
)
"""All suites. ``nbody bench`` without a suite's name runs the first."""


def tables(suite: str) -> ModuleType:
    """The module ``tables`` of a suite."""
    return import_module(f"{SUITES[suite].target.split(':')[0]}.tables")
