"""``python -m nbody`` and the installed script ``nbody``: start and end of the program.

Ctrl-C, SIGTERM or a lost terminal ends the program with exit code 130 and no traceback, even during the imports and if it
comes several times; so temporary files are removed.
"""

import gc
import signal
import sys
import warnings

GARBAGE = 200_000
"""Objects after which garbage is first searched for: a short run makes half as many, nearly all by its imports."""


def program() -> int:
    """As :func:`main`, in a process that ends with it.

    A short command leaves garbage to the end of the process: to search 100 000 objects for it, as Python does several times
    during the imports and four times at its end, took a quarter of the second that a short run lasted. A long one searches
    as usual from its first search on.
    """
    usual = gc.get_threshold()
    gc.set_threshold(GARBAGE)
    gc.callbacks.append(lambda phase, info: gc.set_threshold(*usual))
    code = main()
    gc.disable()
    gc.freeze()
    return code


def main() -> int:
    """Run the command line and return its exit code."""
    code, interrupts = 130, list[int]()

    def interrupt(number: int, frame: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the shell has it ignored
        signal.signal(signal.SIGINT, interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupt)
    # Small benchmarks use few blocks on purpose. (Library users keep the warning; kernels of runs do not cause it.)
    warnings.filterwarnings("ignore", message="Grid size")
    # Numbers that leave the range are found by checks, which name the body or the key; a picture leaves such bodies out.
    warnings.filterwarnings("ignore", message=".* encountered", category=RuntimeWarning)
    try:
        try:
            from nbody.cli import main as command

            code = command()
        except KeyboardInterrupt:  # during the imports, or a second Ctrl-C while the first was handled
            pass
        except Exception:
            if not interrupts:  # a library may raise another error for an interrupt, as pydantic does during its import
                raise
        if code == 130:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a further Ctrl-C has nothing left to end
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if code == 130:
        _die_if_others_wait()
    return code


def _die_if_others_wait() -> None:
    """End by the signal itself if this is one of several processes and the others still wait for it in MPI's start: the
    launcher ends them then, as it does not for an exit code."""
    try:
        from nbody.parallel import launch, team

        waiting = launch() is not None and not team.cache_info().currsize
    except ImportError:  # the interrupt came during NumPy's import, which can't be repeated
        waiting = True  # for a shell the end is the same
    if waiting:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(program())
