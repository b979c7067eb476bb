"""Options that take several values: ``--particles 1024 4096`` as well as ``--particles 1024 --particles 4096``."""

from typing import Any

from typer.core import TyperCommand, TyperOption

OPEN_LIST = "nbody.cli.lists.open"
"""Where a context remembers the list option that may still get values."""


class ListCommand(TyperCommand):
    """A command whose list options take every word up to the next option. (Click's own take one word each.)"""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat a list option's name before each of its values, then parse as usual."""
        lists = {
            name
            for option in self.params
            if isinstance(option, TyperOption) and option.multiple
            for name in option.opts
        }
        spread: list[str] = []
        current, values = "", 0  # the list option whose values these are, and how many it has
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
            if getattr(error, "ctx", ctx) is None:  # an option without its value does not know its command
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """What the shell offers: further values of the list option that stands last, or options as usual."""
        for option in self.params:
            if ctx.meta.get(OPEN_LIST) in option.opts and not incomplete.startswith("-"):
                return option.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _is_number(word: str) -> bool:
    """True for ``-5``: a wrong value, and not an option."""
    try:
        float(word)
    except ValueError:
        return False
    return True
