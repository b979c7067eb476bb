"""``nbody course``: the courses in GPU computing as notebooks and slides, and their graded tasks."""

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from nbody import child
from nbody.cli.completion import words
from nbody.cli.list_command import ListCommand
from nbody.cli.options import argument
from nbody.cli.streams import result
from nbody.errors import InputError, printable
from nbody.output_file import write_new

course = typer.Typer(
    name="course",
    help="The courses in GPU computing: tasks that are checked, notebooks and slides. Text: the manual, 'nbody docs'.\n\n"
    "Begin with:  nbody course start k06",
    no_args_is_help=True,
)
SECONDS = 120
"""How long a check may take. In the simulator the longest takes some seconds."""

Name = Annotated[str, argument("The task; see 'nbody course list'.")]
Course = Annotated[str, argument("The course: matrix, pairs or trees.", words("matrix", "pairs", "trees"))]


@course.command("list", cls=ListCommand)
def tasks() -> int:
    """List the tasks, those of a course in one line.

    \b
    Examples:
      nbody course list
    """
    from nbody.lessons.task import COURSES

    result("\n".join(", ".join(each.NAMES) for each in COURSES))
    return 0


@course.command(cls=ListCommand)
def start(
    name: Name, file: Annotated[Path | None, argument("The new file; by default named after the task.")] = None
) -> int:
    """Write the file with which a task begins: a kernel that is right, and not yet what the rung is about.

    \b
    Examples:
      nbody course start k06
      nbody course start barnes-hut
    """
    from nbody.lessons.task import start as text

    path = file or Path(f"{name}.py")
    _write(path, text(name, str(path)))
    return 0


@course.command(cls=ListCommand)
def check(name: Name, file: Annotated[Path | None, argument("Your file; by default named after the task.")] = None) -> int:
    """Check your kernel for a task, in Numba's simulator: results, reads of memory, bank conflicts, work of a tree.

    It executes your file. Exit code 0: all is right; 1: not yet.

    \b
    Examples:
      nbody course check k06
      nbody course check k06 mine.py
    """
    from nbody.lessons.task import start as first

    path = file or Path(f"{name}.py")
    first(name, str(path))  # refuses unknown names
    if not path.is_file():
        raise InputError(f"{printable(path)}: there is no such file; begin with: nbody course start {name}")
    command = child.python("-m", "nbody.lessons.task", name, str(path))
    try:
        done = subprocess.run(**command, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise InputError(f"{printable(path)}: does not end within {SECONDS} s; is there an endless loop?") from None
    if text := done.stdout.rstrip():
        result(text)
    return done.returncode


@course.command(cls=ListCommand)
def notebook(
    name: Course, file: Annotated[Path | None, argument("The new notebook; by default named after the course.")] = None
) -> int:
    """Write a course as a notebook: its text and figures, and cells that show and run every kernel.

    It runs on a GPU, or without one in Numba's simulator.

    \b
    Examples:
      nbody course notebook matrix
      nbody course notebook trees lesson3.ipynb
    """
    from nbody.lessons.notebook import notebook as text

    _write(file or Path(f"{name}.ipynb"), text(name))
    return 0


@course.command(cls=ListCommand)
def slides(
    name: Course, file: Annotated[Path | None, argument("The new page; by default named after the course.")] = None
) -> int:
    """Write a course as slides: one HTML file that any browser shows, without a network. Arrow keys turn the pages.

    \b
    Examples:
      nbody course slides matrix
    """
    from nbody.lessons.notebook import slides as text

    _write(file or Path(f"{name}.html"), text(name))
    return 0


def _write(path: Path, text: str) -> None:
    """Write a new file, and print its name. Raises InputError: it exists, or can't be written."""
    write_new(path, text.encode())
    result(str(path))
