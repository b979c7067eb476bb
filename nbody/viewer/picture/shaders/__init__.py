"""The shaders, in GLSL 1.20, which every OpenGL since 2.1 compiles."""

from pathlib import Path


def source(name: str) -> str:
    """The text of ``<name>.glsl``. It must be ASCII, because vispy passes its length in characters instead of bytes."""
    return Path(__file__).with_name(f"{name}.glsl").read_text(encoding="ascii")
