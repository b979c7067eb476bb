"""The shaders, in GLSL 1.20, which every OpenGL since 2.1 compiles."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from vispy import gloo

CORNERS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.float32)
"""The corners of a rectangle, as a triangle strip."""


def source(name: str, defined: Iterable[str] = ()) -> str:
    """The text of ``<name>.glsl``, with the words ``defined`` for its ``#ifdef`` lines.

    It must be ASCII, because vispy passes its length in characters instead of bytes.
    """
    text = Path(__file__).with_name(f"{name}.glsl").read_text(encoding="ascii")
    return "".join(f"#define {word}\n" for word in defined) + text


def rectangle(fragment: str, defined: Iterable[str] = ()) -> gloo.Program:
    """A program that covers the target, or the part ``u_rectangle`` of it (left, bottom, right, top, from -1 to 1)."""
    program = gloo.Program(source("picture.vert"), source(fragment, defined))
    program["a_corner"], program["u_rectangle"] = CORNERS, (-1, -1, 1, 1)
    return program


def cover(program: gloo.Program, blend: bool = False) -> None:
    """Draw a program that :func:`rectangle` made; with ``blend``, over what is there."""
    gloo.set_state(blend=blend, blend_func=("src_alpha", "one_minus_src_alpha"), depth_test=False, cull_face=False)
    program.draw("triangle_strip")
