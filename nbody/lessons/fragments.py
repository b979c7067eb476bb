"""The figure of the tensor cores: which lane of a warp holds which elements of one instruction."""

import threading
from typing import Any

import numpy as np

from nbody.lessons.style import BLUE, GRID, INK, ORANGE, PALE, bare, panels
from nbody.linalg.intrinsics import round_tf32
from nbody.linalg.simulated_warp import mma_tf32


def tf32_owners() -> dict[str, np.ndarray]:
    """The lane of each element of A (16, 8), B (8, 8) and the product (16, 8) of ``mma.m16n8k8``, found by multiplying in
    the simulated warp: a lane owns the elements of A and B that change the product when it changes its own."""
    a, b = np.zeros((16, 8), int), np.zeros((8, 8), int)
    for lane in range(32):
        only = np.zeros((32, 4))
        only[lane] = 1, 2, 4, 8
        rows = _multiply(only, _identity_b())
        a[np.nonzero(rows)] = lane
        product = _multiply(_identity_a(), np.where(np.arange(32)[:, None] == lane, (1.0, 2.0), 0.0))
        b[np.nonzero(product[:8])] = lane
    return {"A": a, "B": b, "C": _owners_of_product()}


def _multiply(a: np.ndarray, b: np.ndarray, owners: bool = False) -> np.ndarray:
    """The product (16, 8) of fragments a (32, 4) and b (32, 2), or the lanes that own it."""
    shared: Any = type("Block", (), {})()
    found = np.zeros((16, 8))

    def work(lane: int) -> None:
        product = np.zeros(4)
        mma_tf32(product, 0, a[lane], 0, b[lane], 0)
        g, q = divmod(lane, 4)
        for w in range(4):
            found[g + w // 2 * 8, q * 2 + w % 2] = lane if owners else product[w]

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(32)]
    for lane, thread in enumerate(threads):
        thread.thread_id, thread._manager = lane, shared  # type: ignore[attr-defined]
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _identity_b() -> np.ndarray:
    """The fragments of the identity as B."""
    return np.array([[float(q + 4 * w == g) for w in range(2)] for g, q in (divmod(lane, 4) for lane in range(32))])


def _identity_a() -> np.ndarray:
    """The fragments of the identity as the upper half of A."""
    return np.array(
        [
            [float(w % 2 == 0 and g == q + w // 2 * 4) for w in range(4)]
            for g, q in (divmod(lane, 4) for lane in range(32))
        ]
    )


def _owners_of_product() -> np.ndarray:
    return _multiply(np.zeros((32, 4)), np.zeros((32, 2)), owners=True).astype(int)


def split_bits(x: float) -> tuple[np.ndarray, np.ndarray]:
    """The bits of the significands of x as a float32: those of its TF32 head, and those of the rest, at their places."""
    value = np.float32(x)
    head = round_tf32(value)
    exponent = np.frexp(np.float64(value))[1]
    places = 2.0 ** (exponent - 1 - np.arange(24))

    def bits(number: float) -> np.ndarray:
        left, found = abs(number), np.zeros(24, int)
        for k, place in enumerate(places):
            found[k] = left >= place
            left -= found[k] * place
        return found

    return bits(float(head)), bits(float(value) - float(head))


def fragments() -> Any:
    """Who holds what in one instruction, with the elements of lane 5 dark; and a number in two TF32 parts."""
    figure, axes = panels(1, 4, 2.75, width_ratios=(8, 8, 8, 13))
    for panel, (matrix, lanes) in zip(axes[0], tf32_owners().items(), strict=False):
        rows, columns = lanes.shape
        panel.imshow(lanes == 5, cmap=_two(), interpolation="nearest", extent=(0, columns, rows, 0))
        for i, j in np.ndindex(lanes.shape):
            colour = "white" if lanes[i, j] == 5 else INK
            panel.text(j + 0.5, i + 0.54, lanes[i, j], ha="center", va="center", fontsize=6, color=colour)
        panel.set_ylim(16, 0)
        bare(panel, f"{matrix}, {rows}×{columns}")
    _split(axes[0, 3])
    return figure


def _split(panel: Any) -> None:
    """k20: the bits of one number, and of its two parts."""
    head, rest = split_bits(np.pi / 4)
    for y, (name, bits, colour) in enumerate((("x", head + rest, INK), ("big", head, BLUE), ("small", rest, ORANGE))):
        used = np.nonzero(bits)[0]
        for k, bit in enumerate(bits):
            inside = used[0] <= k <= used[-1]
            panel.barh(y, 0.9, left=k, height=0.7, color=(colour if bit else GRID) if inside else PALE)
        panel.text(-0.6, y, name, ha="right", va="center")
    panel.set_xlim(-5, 24)
    panel.set_ylim(4.6, -2.4)
    bare(panel, "k20: x = big + small, π/4 in bits")


def _two() -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap([PALE, INK])
