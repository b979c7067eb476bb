"""The shaders, in GLSL 1.20, which every OpenGL since 2.1 compiles."""

from collections.abc import Iterable
from pathlib import Path


def source(name: str, defined: Iterable[str] = ()) -> str:
    """The text of ``<name>.glsl``, with the words ``defined`` for its ``#ifdef`` lines.

    It must be ASCII, because vispy passes its length in characters instead of bytes.
    """
    text = Path(__file__).with_name(f"{name}.glsl").read_text(encoding="ascii")
    return "".join(f"#define {word}\n" for word in defined) + text
