"""k06: the same kernel with threadIdx.x along the columns, without padding. The right indices solve both problems.

The threads of a warp now read one row of a global tile (one 128-byte line) and one row of a shared tile (32
banks), and all of them read the same number of A (a broadcast). Padding would gain nothing now.

H200, n = 2048: 8.13 TFLOP/s in float32 (k05: 1.83), 4.58 in float64 (1.76).
"""

from nbody.linalg.k04_bank_conflicts import TILE, launcher
from nbody.linalg.rung import Rung, tile_reads

RUNG = Rung(
    title="coalesced tiles",
    idea="threadIdx.x runs along the rows of A, B and C: coalesced global reads, conflict-free shared ones.",
    limit="two shared reads for each multiply-add: the load units are the bottleneck.",
    launch=launcher(width=TILE, x_is_row=False),
    reads=tile_reads((TILE, TILE)),
    improves="k05",
)
