"""The graded tasks of the courses: ``python -m nbody.lessons.task k06 FILE`` checks a file, in Numba's simulator.

A file of a task has a function, ``launch`` or ``solve``; :mod:`.task_matrix`, :mod:`.task_pairs` and :mod:`.task_trees` have
the files with which tasks begin, and what is checked.
"""

import os
import runpy
import sys
from typing import Any

from nbody.errors import InputError, last_line, printable, unknown
from nbody.lessons import task_matrix, task_pairs, task_trees

COURSES: tuple[Any, ...] = (task_matrix, task_pairs, task_trees)

TASKS = tuple(name for course in COURSES for name in course.NAMES)
"""Rungs and engines that can be written as a task."""


def course_of(name: str) -> Any:
    """The module with a task. Raises InputError: there is no such task."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return next(course for course in COURSES if name in course.NAMES)


def start(name: str, file: str) -> str:
    """The file with which a task begins. Raises InputError: there is no such task."""
    from nbody.forces.registry import ENGINES
    from nbody.linalg import LADDER

    course = course_of(name)
    if course is task_matrix:
        rung = LADDER.load(name)
        title = f"{rung.title[0].upper()}{rung.title[1:]}. {rung.idea}"
    else:
        title = f"{name}: {ENGINES[name].summary}."
    text: str = course.START if isinstance(course.START, str) else course.START[name]
    return text.format(name=name, file=file, title=title)


def main(name: str, path: str) -> int:
    """Print an answer; 0 if all is right, 1 if not, 2 if the file can't be used."""
    good, course, shown = True, course_of(name), printable(path)
    try:
        found = runpy.run_path(path)
        if course.FUNCTION not in found:
            raise InputError(f"has no function '{course.FUNCTION}'; 'nbody course start {name}' writes one")
        for right, text in course.check(found[course.FUNCTION], name):
            print("ok     " if right else "not yet", text, flush=True)
            good = good and right
    except InputError as error:
        print(f"error: {shown}: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        print(f"error: {shown}: {type(error).__name__}: {last_line(str(error), '')}", file=sys.stderr)
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before Numba is imported
    sys.exit(main(*sys.argv[1:]))
