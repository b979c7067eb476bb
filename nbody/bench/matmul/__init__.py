"""The ladder's suite: matrix products, rung by rung, beside cuBLAS."""

from collections.abc import Sequence
from typing import Any

from nbody.bench import Measure, Notify


def prepare(
    notify: Notify,
    *,
    sizes: Sequence[int] = (),
    rungs: Sequence[str] = (),
    precision: Sequence[str] = (),
) -> Measure:
    """Measure the ladder of matrix products, beside cuBLAS.

    Each product is checked before it is timed. With --explain nothing is
    measured: it says what rungs do, what their kernels need of your card,
    and what limits them.

    Examples:

      nbody bench matmul

      nbody bench matmul --sizes 1024 2048 --rungs k02 k06 k17

      nbody bench matmul --explain k04 k06
    """
    from nbody.bench import report
    from nbody.bench.matmul import cublas, suite

    sizes, precision = sorted(set(sizes or suite.SIZES)), list(dict.fromkeys(precision or suite.PRECISIONS))
    suite.check(sizes, precision, rungs)
    library, reason = cublas.load()
    if library is None:
        notify(f"not measured: cuBLAS ({reason})")

    def measure(notify: Notify) -> Any:
        machine: Any = report.machine() | {"cublas": library and library.version, "no_cublas": reason}  # type: ignore
        absent = [] if library else [f"cuBLAS ({reason})"]
        return report.Report(machine, suite.measure(sizes, precision, rungs, notify), absent)

    return measure
