"""Commands that several processes of a launcher run together: only rank 0 prints, and all ranks exit together."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from nbody.cli import streams
from nbody.errors import InputError, NBodyError

COMMANDS = ("run", "resume", "rerun", "doctor")  # the commands that ranks run together


def check_command(name: str) -> None:
    """Raise an InputError if a launcher has started several processes of a command that works in one."""
    from nbody.parallel import launch

    launched = launch()
    if launched is not None and name not in COMMANDS:
        raise InputError(
            f"'nbody {name}' works in one process, and {launched.launcher} has started several; start it alone (several "
            f"ranks: {', '.join(COMMANDS)})"
        )


def refuse_ranks(option: str) -> None:
    """Raise an InputError if there are several ranks, for an option of one process."""
    from nbody.parallel import launch

    if (launched := launch()) is not None:
        raise InputError(f"{option}: needs a run in one process, and {launched.launcher} has started several; leave it out")


@contextmanager
def together() -> Iterator[None]:
    """Run a command on all ranks. Only rank 0 prints. They end with the same error, or the rank that fails while the others
    wait for it says so and ends them all."""
    from nbody.parallel import launch, team

    launched = launch()
    if launched and launched.rank:
        streams.mute()
    ranks = team()
    if launched is None:
        yield
        return
    for number in (signal.SIGTERM, signal.SIGHUP):  # a rank may wait in MPI, where Python's handlers are not called
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    try:
        with ranks.agreed():
            yield
    except BaseException as error:
        if ranks.size > 1 and not ranks.is_common(error):
            streams.unmute()
            if not isinstance(error, NBodyError | KeyboardInterrupt):
                traceback.print_exc()
            line = str(error) or "interrupted"
            streams.print_message(f"error: {ranks.with_rank(ranks.rank, line)}")
            ranks.abort(getattr(error, "exit_code", 130 if isinstance(error, KeyboardInterrupt) else 1))
        raise
