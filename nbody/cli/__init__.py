"""The command line: one short file per command, no physics and no drawing.

Results go to standard output, progress and messages to standard error. Exit codes: 0 done, 1 the program failed, 2 the
user's input was wrong (one line says what, where and the fix), 130 interrupted.
"""

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nbody.cli import streams
from nbody.cli.list_command import Context, ListCommand
from nbody.cli.ranks import check_command, together
from nbody.errors import InputError, NBodyError, did_you_mean, printable
from nbody.registry import imported

COMMANDS = {
    "run": "run:run", "resume": "run:resume", "view": "view:view", "movie": "movie:movie", "plot": "plot:plot",
    "info": "info:info", "export": "export:export", "doctor": "doctor:doctor", "rerun": "run:rerun",
    "sweep": "sweep:sweep", "diff": "diff:diff", "new": "lists:new", "scenarios": "lists:scenarios",
    "verify": "verify:verify", "list": "lists:list_names", "map": "map:map_systems", "help": "help:help_command",
    "docs": "docs:docs",
}  # fmt: skip
"""The commands in the order of the help: the file of this room, and the function in it."""

GROUPS = {"bench": "bench:bench", "course": "course:course"}
"""The groups of commands, likewise."""


class Interrupted(NBodyError):
    """Ctrl-C ended a command. The message is empty if the command has already reported it."""

    exit_code = 130


MEANT = {
    "ls": "list", "show": "info", "play": "view", "start": "run",
    "simulate": "run", "continue": "resume", "restart": "resume", "convert": "export", "compare": "diff",
    "man": "docs", "manual": "docs", "explain": "help",
}  # fmt: skip
"""What people type, and the command that does it."""


class Commands(TyperGroup):
    """The program's commands. (Typer itself would end an interrupted command without a message.)"""

    def list_commands(self, ctx: Context) -> list[str]:
        """Commands first, then groups of commands."""
        return sorted(super().list_commands(ctx), key=lambda name: isinstance(self.commands[name], TyperGroup))

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        """Find the command. Raises InputError with the likely one if there is none of this name."""
        if args[0] == "help" and args[1:] and args[1] in self.commands:
            args = [*args[1:], "--help"]
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            check_command(name)
            return super().resolve_command(ctx, args)
        from nbody.cli.completion import RECORDINGS, SCENARIOS
        from nbody.scenario.packaged import names

        start = f"there is no command '{printable(name)}'"
        if name in names() or name.endswith(SCENARIOS):
            raise InputError(f"{start}; run this scenario with: nbody run {printable(name)}")
        if name.endswith(RECORDINGS):
            raise InputError(f"{start}; show this recording with: nbody view {printable(name)}")
        known = self.list_commands(ctx)
        hint = did_you_mean(name, known, {each: f"nbody {command}" for each, command in MEANT.items()})
        raise InputError(f"{start}{hint}; one of: {', '.join(known)}")

    def invoke(self, ctx: Context) -> Any:
        """Run the command. Raises Interrupted if Ctrl-C ended it; the message is empty if it has been reported."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop) or ("" if streams.interrupt_reported() else "interrupted")) from None


def _show_version(wanted: bool) -> None:
    if wanted:
        from nbody.machine import version

        streams.result(f"nbody {version()}")
        raise typer.Exit


def _program_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Gravity between particles, on a GPU or a CPU: run it, look at it, measure it.

    Start with:  nbody run scenarios/disk.yaml --particles 20480
    """


def program(*names: str) -> typer.Typer:
    """The program with these commands, or with all. (To import and describe all takes a tenth of a short run.)"""
    app = typer.Typer(
        name="nbody",
        cls=Commands,
        help="Gravity between particles, on a GPU or a CPU: run it, look at it, measure it.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_program_options)
    for name in names or (*COMMANDS, *GROUPS):
        if name in GROUPS:
            app.add_typer(imported(f"nbody.cli.{GROUPS[name]}"))
        else:
            app.command(name, cls=ListCommand)(imported(f"nbody.cli.{COMMANDS[name]}"))
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    streams.prepare()
    try:
        return _run(arguments)
    finally:
        streams.flush()


FEWEST_FILES = 32  # that a process may open: with 8, vispy says that fontconfig is not found


def _check_environment() -> None:
    """Raise an InputError for a value or a limit with which even imports fail."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    if threads.lstrip("-").isdecimal() and int(threads[:20]) < 1:
        raise InputError(f"NUMBA_NUM_THREADS={threads[:20]}: must be at least 1; mend or unset this variable")
    if os.name == "posix":
        from resource import RLIMIT_NOFILE, getrlimit

        if 0 <= (most := getrlimit(RLIMIT_NOFILE)[0]) < FEWEST_FILES:
            raise InputError(f"at most {most} files may be open here (ulimit -n); raise the limit to {FEWEST_FILES} or more")


def _run(arguments: list[str] | None) -> int:
    try:
        _check_environment()
        with together():
            result = _typed(arguments)
        if sys.stdout is not None:  # None if the shell has closed it
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (Interrupted, KeyboardInterrupt) as stop:
        if line := str(stop):
            streams.print_message(line)
        return Interrupted.exit_code
    except NBodyError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:  # 'nbody bench | head' is not an error
        return 0
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Typer calls it one
            return 0
        raise
    except ImportError as error:
        from nbody.install import missing_package

        if not (line := missing_package(error)):
            raise
        return _fail(line, 2)
    except MemoryError as error:
        reason = f" ({error})" if str(error) else ""
        return _fail(
            f"there is too little memory{reason}; use fewer particles, or raise the limit (ulimit -v, the job's)", 1
        )
    except OSError as error:
        if error.errno == errno.EMFILE:
            return _fail(f"too many files are open ({error}); raise the limit (ulimit -n)", 1)
        if not streams.lost_output():
            raise
        return _fail(f"standard output can't be written ({error.strerror}); files that were written are kept", 1)


def _typed(arguments: list[str] | None) -> Any:
    """Run the command that these words name. Raises InputError for Typer's own errors, such as an unknown option."""
    words = sys.argv[1:] if arguments is None else arguments
    alone = words and words[0] != "help" and words[0] in (*COMMANDS, *GROUPS)  # 'help' explains other commands too
    try:
        return program(*words[:1] if alone else ())(arguments, standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        if near := getattr(error, "possibilities", None):  # the dashes make all options alike
            vars(error)["possibilities"] = [each for each in near if did_you_mean(vars(error)["option_name"], [each])]
        path, message = context.command_path if context else "nbody", error.format_message().strip()
        if not message:  # no command: its help has been printed
            return 2
        raise InputError(f"{message} (see '{path} --help')") from None


def _fail(message: str, code: int) -> int:
    streams.print_message("error: " + " ".join(message.split()))
    return code
