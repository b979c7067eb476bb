"""Figures of the force engines: which thread computes which pairs, when, and what it reads for that."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nbody.compute.simulator.traced import BARRIER, SHUFFLE, Access, Trace, trace
from nbody.figures import ORANGE, RED, SERIES
from nbody.forces.direct import gpu_global, gpu_split, gpu_tiled, gpu_unrolled
from nbody.forces.direct.gpu_pairs import build
from nbody.forces.direct.gpu_triangle import LANES, PairTiling, block_of, units_before
from nbody.forces.gpu_engine import Shape
from nbody.lessons.style import bare, coloured, image, panels

COUNT, TILE = 128, 32
"""Bodies, and threads per block and bodies per tile, of the traced kernels: fewer than in use, so that a figure shows
them."""

SHAPE = Shape("plummer", 3, np.dtype(np.float32))


def _bodies(count: int) -> np.ndarray:
    """(N, 4) bodies on a line: body j is at x = j, so that a number that travels tells whose it is."""
    body = np.zeros((count, 4), np.float32)
    body[:, 0], body[:, 3] = np.arange(count), 1
    return body


ENGINES: dict[str, tuple[Callable[[], Any], int, int]] = {
    "gpu-global": (lambda: gpu_global.build(SHAPE), TILE, TILE),
    "gpu-tiled": (lambda: gpu_tiled.build(SHAPE, TILE), TILE, TILE),
    "gpu-unrolled": (lambda: gpu_unrolled.build(SHAPE, TILE), TILE, TILE * gpu_unrolled.BODIES),
    "gpu-split": (lambda: gpu_split.build(SHAPE), gpu_split.THREADS, gpu_split.THREADS // LANES * gpu_split.BODIES),
}
"""Kernels of rows, with their threads and bodies per block."""


@cache
def traced_engine(name: str) -> Trace:
    """The trace of an engine's kernel for :data:`COUNT` bodies."""
    build, threads, bodies = ENGINES[name]
    kernel, one = build(), np.float32(1)
    return trace(
        kernel, COUNT // bodies, threads, body=_bodies(COUNT), acceleration=np.zeros((COUNT, 4), np.float32),
        start=np.int64(0), acting=np.int64(COUNT), G=one, length2=one,
    )  # fmt: skip


def acting_bodies(name: str, block: int, t: int, thread: list[Access]) -> tuple[list[int], list[int]]:
    """The bodies that a thread computes forces on, and those that act on them, in order."""
    read = [e.index // 4 for e in thread if e.array == "body" and e.index % 4 == 3]
    if name == "gpu-split":
        first = (block * gpu_split.THREADS + t) // LANES * gpu_split.BODIES
        return [first + k for k in range(gpu_split.BODIES)], read
    per_block = ENGINES[name][2]
    acted = list(range(block * per_block + t, (block + 1) * per_block, TILE))
    if name == "gpu-global":
        return acted, read
    acting, tile = [], -1
    for before, event in pairwise(thread):
        tile += before.array == BARRIER and event.array == "shared0" and not event.write
        if event.array == "shared0" and not event.write and event.index % 4 == 3:
            acting.append(tile * TILE + event.index // 4)
    return acted, acting


class PairsComputed(NamedTuple):
    """The pairs that an engine computes, (N, N) bool by the body acted on and the acting one: all of one thread, and those
    of its block in the first quarter of the time; and the bodies read from global and from shared memory per pair."""

    of_thread: np.ndarray
    of_block: np.ndarray
    from_global: float
    from_shared: float


def pairs_of(name: str, traced: Trace, thread: int = 5) -> PairsComputed:
    """What an engine's kernel does by its trace, in its second block if it has several."""
    block = min(1, len(traced) - 1)
    of_thread, of_block = np.zeros((2, COUNT, COUNT), bool)
    for t, accesses in enumerate(traced[block, 0]):
        acted, acting = acting_bodies(name, block, t, accesses)
        of_block[np.ix_(acted, acting[: len(acting) // 4])] = True
        if t == thread:
            of_thread[np.ix_(acted, acting)] = True
    events = (e for threads in traced.values() for accesses in threads for e in accesses)
    reads = Counter(e.array for e in events if e.array in ("body", "shared0") and not e.write and e.index % 4 == 3)
    return PairsComputed(of_thread, of_block, reads["body"] / COUNT**2, reads["shared0"] / COUNT**2)


def pairs_computed() -> Figure:
    """The square of pairs, row i the body acted on, column j the acting one, for four engines: the pairs of one thread, and
    those that its block meets in the first quarter of its time."""
    figure, axes = panels(1, 4, 2.6)
    for panel, name in zip(axes[0], ENGINES, strict=True):
        found = pairs_of(name, traced_engine(name))
        colours = np.where(found.of_thread, RED, np.where(found.of_block, "#a9c6e6", ""))
        loads = f"{found.from_global:.2g} bodies from global,\n{found.from_shared:.2g} from shared memory"
        image(panel, coloured(colours), f"{name}, per pair:\n{loads}")
    axes[0, 0].set_ylabel("body i, acted on")
    figure.supxlabel(
        "body j, acting.   red: the pairs of one thread; blue: of its block in the first quarter of the time",
        fontsize=8.5,
    )
    return figure


def triangle() -> Figure:
    """The units of ``gpu-symmetric`` for 24 chunks, tiles of three, and 10 blocks; a colour per block."""
    chunks, bodies, blocks = 24, 3, 10
    tiles = chunks // bodies
    units = units_before(tiles, chunks, bodies)
    owner = np.full((tiles, chunks), -1)
    for tile in range(tiles):
        for chunk in range(tile * bodies, chunks):
            unit = units_before(tile, chunks, bodies) + chunk - tile * bodies
            owner[tile, chunk] = block_of(unit, units, blocks)
    figure, axes = panels(1, 1, 2.6)
    panel = axes[0, 0]
    for (tile, chunk), block in np.ndenumerate(owner):
        if block >= 0:
            panel.barh(tile, 0.94, left=chunk, height=0.9, color=SERIES[block % len(SERIES)])
            diagonal = chunk < (tile + 1) * bodies
            panel.text(chunk + 0.47, tile, "D" if diagonal else block, ha="center", va="center", fontsize=7, color="white")
    panel.set_ylim(tiles - 0.4, -0.6)
    panel.set_xlim(-0.3, chunks)
    panel.set_xlabel("chunk of columns")
    panel.set_ylabel("tile of rows")
    runs = sorted({int((owner == block).sum()) for block in range(blocks)})
    sizes = " or ".join(map(str, runs))
    bare(
        panel,
        f"{units} units for {blocks} blocks, {sizes} each; D: both ways of a pair are computed, elsewhere once for both",
    )
    return figure


def rotation() -> Figure:
    """Which column is in which lane in each step of ``gpu-symmetric``, from the numbers that the shuffles bring."""
    tiling, count = PairTiling(1, 1), 64
    units = units_before(2, 2, tiling.bodies)
    sums = {"rows": np.zeros((3, 4, tiling.tile), np.float32), "columns": np.zeros((2, 4, count), np.float32)}
    one_block = {"first": 0, "run": 0, "runs": 1, "quotient": units, "remainder": 0}
    kernel = build(SHAPE, tiling, "equal")
    block = trace(kernel, 1, tiling.chunk, body=_bodies(count), **sums, length2=np.float32(1), **one_block)[0, 0]
    shuffles = np.array([[e.index for e in thread if e.array == SHUFFLE] for thread in block])
    per_step = shuffles.shape[1] // (units * LANES)
    arrived = shuffles[:, ::per_step].reshape(LANES, units, LANES)[:, 1]  # unit 1: tile 0 and chunk 1
    own = np.arange(LANES) + arrived.min()
    held = np.column_stack([own, arrived])[:, :LANES].astype(int) % LANES
    figure, axes = panels(1, 1, 3.3)
    panel = axes[0, 0]
    panel.imshow(held, cmap="twilight_shifted", interpolation="nearest", extent=(0, LANES, LANES, 0))
    for step in range(0, LANES, 4):
        for lane in range(0, LANES, 4):
            panel.text(step + 0.5, lane + 0.6, held[lane, step], ha="center", va="center", fontsize=6, color="white")
    panel.set_xlabel("step")
    panel.set_ylabel("lane")
    bare(panel, "gpu-symmetric: the column in each lane")
    return figure


def force_matrix() -> Figure:
    """|W| for 64 bodies of a Plummer sphere sorted by distance from the centre, the factor, and the product."""
    from nbody.initial import make_particles
    from nbody.scenario import Scenario

    particles = make_particles(Scenario.load("plummer").override(particles=64))
    x = particles.position[np.argsort((particles.position**2).sum(axis=1))]
    difference = x[None] - x[:, None]
    weights = (1 / 64) / ((difference**2).sum(axis=2) + 0.01**2) ** 1.5
    np.fill_diagonal(weights, 0)
    factor = np.column_stack([x - x.mean(axis=0), np.ones(64)])
    figure, axes = panels(1, 3, 2.7, width_ratios=(8, 1.4, 1.4))
    title = "W, weights of all pairs (dark: near), made and multiplied in blocks of rows"
    image(axes[0, 0], np.log10(weights + 1e-4), title, cmap="Blues", aspect="auto")
    for row in range(0, 65, 16):
        axes[0, 0].axhline(row, color=ORANGE, linewidth=1.2)
    for panel, values, name in ((axes[0, 1], factor, "F = [x y z 1]"), (axes[0, 2], weights @ factor, "W·F")):
        scale = np.abs(values).max(axis=0)
        image(panel, values / scale, name, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    return figure
