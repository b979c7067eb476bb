"""k05: the same kernel with rows of 33 words: one unused word per row removes the bank conflicts.

Element (i, j) is now in bank (33 i + j) mod 32 = (i + j) mod 32: the 32 rows of a column are in 32 banks. (A float64 is two
words: half a warp is served at a time, in the same way.) Global reads of neighbouring threads are still a row apart.

H200, n = 2048: 1.83 TFLOP/s in float32 (k04: 1.23), 1.76 in float64 (0.76).
"""

from nbody.linalg.k04_bank_conflicts import TILE, launcher
from nbody.linalg.rung import Rung, tile_reads

WIDTH = TILE + 1
"""Numbers in a row of a stored tile."""

RUNG = Rung(
    title="padded tiles",
    idea="Tiles are stored in rows of 33 words, so that a column touches all 32 banks.",
    limit="global reads are still not coalesced: the threads of a warp read 32 rows at once.",
    launch=launcher(width=WIDTH, x_is_row=True),
    reads=tile_reads((TILE, TILE)),
    improves="k04",
)
