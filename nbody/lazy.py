"""Names of a package that are imported when they are first used, so that importing the package imports nothing heavy."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(package: str, modules: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """The ``__all__`` and the ``__getattr__`` of a package.

    Args:
        package: its ``__name__``.
        modules: the names, separated by blanks, that each module of the package offers.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def imported(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        found = getattr(import_module(f"{package}.{homes[name]}"), name)
        return vars(sys.modules[package]).setdefault(name, found)

    return list(homes), imported
