"""Commands whose list options take several words."""

from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperOption

from nbody.errors import InputError
from nbody.given import number_in

Context = Any  # Click's; where its class is depends on Typer's version

OUTPUT = ("--output", "-o", "--out")
"""What may stand before the name of a file that a command writes, also where that is an argument."""

OPEN_LIST = "nbody.cli.open_list"  # the key in a context's 'meta' for the list option that may still get values


class ListCommand(TyperCommand):
    """A command whose list options take every word up to the next option: ``--particles 1024 4096`` as well as ``--particles
    1024 --particles 4096``. (Click's own options take one word each.) While the command lacks an argument, the first word
    that can't be another value is that argument: ``run --set gravity.G=2 disk``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Repeat a list option's name before each of its values, then parse as usual."""
        arguments = [each for each in self.params if isinstance(each, TyperArgument)]
        given, args = args, _output_last(args) if any(each.name == "output" for each in arguments) else args
        options = {name: each for each in self.params if isinstance(each, TyperOption) for name in each.opts}
        lacking = sum(len(args) if each.nargs < 0 else each.nargs for each in arguments)
        words: list[str] = []
        option, name, values = None, "", 0  # the option whose value may come next, and the number of its values so far
        for word in args:
            if word.startswith("-") and number_in(word) is None:  # -5 is a (wrong) value, not an option
                option, name, values = options.get(word), word, 0
            elif option is None or option.is_flag or (values and not _goes_on(option, word, lacking > 0)):
                option, lacking = None, lacking - 1
            else:
                values += 1
                if values > 1:
                    words.append(name)
            words.append(word)
        ctx.meta[OPEN_LIST] = name if option is not None and option.multiple else ""
        try:
            return super().parse_args(ctx, words)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # Click gives no context to the error of an option without its value
                error.ctx = ctx  # type: ignore[attr-defined]
            if args is not given and "extra argument" in str(error):
                raise InputError(f"-o {args[-1]}: another file to write is named too; leave one of the two out") from None
            raise

    def shell_complete(self, ctx: Context, incomplete: str) -> list:
        """Completions: further values of the last list option, or options as usual."""
        for each in self.params:
            if ctx.meta.get(OPEN_LIST) in each.opts and not incomplete.startswith("-"):
                return each.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _output_last(args: list[str]) -> list[str]:
    """The words, with a file that is named as an option's value as the last argument."""
    for k, word in enumerate(args):
        name, equals, value = (f"-o={word[2:].lstrip('=')}" if word[:2] == "-o" != word else word).partition("=")
        if name in OUTPUT:
            end = k + 1 if equals else k + 2
            return [*args[:k], *args[end:], "--", *([value] if equals else args[k + 1 : end])]
    return args


def _goes_on(option: TyperOption, word: str, lacking: bool) -> bool:
    """True if a word is one more value of an option. If an argument is ``lacking``, it has the form that the help shows."""
    shown = option.metavar or ""
    if not option.multiple or not lacking:
        return option.multiple
    if "=" in shown:
        return "=" in word
    return not shown.startswith("<list") or word[:1].isdigit() or number_in(word) is not None
