"""Options that take several values: ``--particles 1024 4096`` as well as ``--particles 1024 --particles 4096``."""

from typing import Any

from typer.core import TyperCommand, TyperOption

OPEN_LIST = "nbody.cli.lists.open"
"""The key in a context's ``meta`` for the list option that may still get values."""


class ListCommand(TyperCommand):
    """A command whose list options take every word up to the next option. (Click's own options take one word each.)"""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat a list option's name before each of its values, then parse as usual."""
        lists = {
            name
            for option in self.params
            if isinstance(option, TyperOption) and option.multiple
            for name in option.opts
        }
        spread: list[str] = []
        current, values = "", 0  # the list option that is being read, and the number of its values so far
        for word in args:
            if word.startswith("-") and not _is_number(word):
                current, values = (word if word in lists else ""), 0
            elif current:
                values += 1
                if values > 1:
                    spread.append(current)
            spread.append(word)
        ctx.meta[OPEN_LIST] = current
        try:
            return super().parse_args(ctx, spread)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # Click gives no context to the error of an option without its value
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completions: further values of the last list option, or options as usual."""
        for option in self.params:
            if ctx.meta.get(OPEN_LIST) in option.opts and not incomplete.startswith("-"):
                return option.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _is_number(word: str) -> bool:
    """True if the word is a number: ``-5`` is a (wrong) value, not an option."""
    try:
        float(word)
    except ValueError:
        return False
    return True
