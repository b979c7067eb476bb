"""Files that are written whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Notify = Callable[[str], object]
"""Gets a line for the user."""

Publish = Callable[[Path, Path], object]
"""Gives a finished file (first path) its name (second path)."""


@contextmanager
def whole_file(path: Path, publish: Publish = os.replace) -> Iterator[Path]:
    """A path at which a new file is to be written. It gets the name ``path`` at the end of the block, after the disk has
    confirmed its bytes; after an error, or a kill, ``path`` is as it was.

    The file is written in a hidden folder beside ``path``, with a random name and for this user only: no other file, and no
    link that another user has made, is written to.

    Args:
        path: in an existing folder. A link is replaced, not followed.
        publish: :func:`os.replace` replaces an older file, :func:`keeping` keeps it, and :func:`if_free` refuses it.

    Raises:
        OSError: the file can't be written.
    """
    with tempfile.TemporaryDirectory(prefix=".nbody-", dir=path.parent, ignore_cleanup_errors=True) as folder:
        draft = Path(folder, path.name)
        yield draft
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        publish(draft, path)


def if_free(draft: Path, path: Path) -> None:
    """Give ``draft`` the name ``path``. Raises FileExistsError if there is such a file."""
    try:
        os.link(draft, path)  # unlike a rename, it never replaces a file
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(draft, path)  # a file system without hard links


def keeping(notify: Notify) -> Publish:
    """Return a function that gives the name, and before that a numbered name to an older file; ``notify`` gets a line about
    the older file."""

    def publish(draft: Path, path: Path) -> None:
        keep_older_file(path, notify)
        os.replace(draft, path)

    return publish


def keep_older_file(path: Path, notify: Notify) -> Path | None:
    """Give the file at ``path``, if there is one, a second name: the first free name of ``run.1.h5``, ``run.2.h5`` …. Then
    its first name may be replaced. Returns the second name. (After a kill in between, the file has both names.)"""
    number = 0
    while path.exists():
        number += 1
        name = path.with_name(f"{path.stem}.{number}{path.suffix}")
        if not name.exists():
            try:
                os.link(path, name)  # fails if the name has been taken meanwhile; a rename would overwrite it
            except FileExistsError:
                continue
            except OSError:  # a file system without hard links
                os.rename(path, name)
        elif not name.samefile(path):
            continue
        notify(f"{path} existed; it is kept as {name.name}")
        return name
    return None
