"""The programs of the graphics card, in GLSL 1.20, which every OpenGL since 2.1 reads."""

from pathlib import Path


def source(name: str) -> str:
    """The text of ``<name>.glsl``: ASCII, since vispy tells OpenGL its length in characters, and not in bytes."""
    return Path(__file__).with_name(f"{name}.glsl").read_text(encoding="ascii")
