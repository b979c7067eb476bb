"""Block time steps on a GPU: three kernels per block, and nothing returns to the host between them.

    predict   all bodies to the next time; list the bodies whose steps end there
    force     each warp: 32 of the listed bodies, and a share of all bodies, from tiles in shared memory
    finish    each warp: the sums of one listed body in a fixed order, its correction and its next step

Where blocks are small their number is what counts: twenty-four of them are one CUDA graph. The next time is the smallest end
of all steps, found by the kernels that touch them (an atomic minimum of integers, which has no order). The listed bodies may
come in any order: no sum depends on it.

In ``mixed``, which order 4 offers, the pairs are computed in float32, from positions split into two float32 numbers and
velocities. The sums over tiles are float32; all others, and the bodies themselves, are float64.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.gpu import SIMULATED, Graph, cuda
from nbody.integrators.blocks.formulas import APPROACH, FOREVER, TICKS, corrector, pair_weights, predictor, step_length
from nbody.integrators.blocks.pairs import PARKED, Bodies, Orbits, Pairs
from nbody.integrators.integrator import Motion
from nbody.law import LAWS, pair_law

THREADS = 64 if SIMULATED else 128
WARPS = THREADS // 32
TILE = 16 * WARPS
"""Bodies per tile; each of the block's warps takes its share."""

BLOCKS_PER_GRAPH = 24
"""A multiple of three: the slots for the next time are used in turn."""

MOST_GRAPHS = 16
"""Graphs that are launched before the host looks at the clock."""

FAR = (1 << 62) - 1

# The clock, (CLOCK,) int64: the next time and the number of listed bodies (three slots each), then
REACHED, END, UNIT, SMALLEST, BUDGET, BLOCKS_DONE, SINGLE, FAILED, EXCEEDED, CLOCK = range(6, 16)
# The scale, (4,) float64: the length of a tick, eta, G, and the softening length squared.
TICK, ETA, STRENGTH, LENGTH2 = 0, 1, 2, 3


class Kernels(NamedTuple):
    """The compiled kernels for one law, order and precision."""

    begin: Any
    predict: Any
    force: Any
    finish: Any
    store: Any
    present: Any
    resolve: Any


def rows_per_body(mixed: bool) -> int:
    """Numbers per body of the prediction: position (split in two if mixed), velocity, acceleration, mass."""
    return 13 if mixed else 10


@cache
def kernels_for(law_name: str, order: int, mixed: bool, first: bool = False, shared: bool = False) -> Kernels:
    """The kernels; ``first``: those for the first evaluation, which needs the snap in both orders; ``shared``: all bodies
    make the shortest step."""
    real = np.float32 if mixed else np.float64
    law = pair_law(law_name, 3, gpu.rsqrt, gpu.device_function)
    softened = LAWS.load(law_name).needs_length  # so a body exerts no force on itself
    snap = first or order == 6
    weights = pair_weights(6 if first else order, law, gpu.device_function)
    exact = cuda.jit(device=True) if not SIMULATED else lambda function: function
    predict_one, correct_one = predictor(order, exact), corrector(order, exact)
    length = step_length(order, math.sqrt, exact)
    zero, one, double = real(0), real(1), np.float64
    split = 3 if mixed else 0
    numbers = rows_per_body(mixed)

    @exact
    def in_ticks(h, tick, most):
        """The largest power of two of ticks that is at most h; 0 if there is none."""
        found = most
        while found > 0 and not found * tick <= h:
            found >>= 1
        return found

    @gpu.kernel
    def begin(last, step, wanted, clock, scale):
        """Begin a stretch: all bodies are at time 0, and get steps of whole ticks."""
        i = cuda.grid(1)
        if i < last.size and step[i] < PARKED:
            last[i] = 0
            step[i] = in_ticks(wanted[i], scale[TICK], clock[UNIT])
            if step[i] < clock[SMALLEST]:
                cuda.atomic.max(clock, FAILED, i)
            cuda.atomic.min(clock, 0, step[i])

    @gpu.kernel
    def predict(rows, mass, p, last, step, listed, clock, scale, slot):
        """Predict all bodies to the next time, unless the run is to pause; list those whose steps end there."""
        ends = cuda.shared.array(THREADS, np.int64)
        j, t = cuda.grid(1), cuda.threadIdx.x
        now = clock[slot]
        if now > clock[END] or clock[BLOCKS_DONE] >= clock[BUDGET] or clock[FAILED] >= 0 or clock[EXCEEDED]:
            return
        ends[t] = FAR
        if j < mass.size:
            end = last[j] + step[j]
            if shared or end == now:
                if shared:
                    step[j] = now - last[j]
                listed[cuda.atomic.add(clock, 3 + slot, 1)] = j
            else:
                ends[t] = end
            h = (now - last[j]) * scale[TICK] if step[j] < PARKED else 0.0
            for k in range(3):
                x, v, a = predict_one(
                    rows[k, j], rows[3 + k, j], rows[6 + k, j], rows[9 + k, j], rows[12 + k, j], rows[15 + k, j], h
                )
                high = real(x)
                p[k, j] = high
                if mixed:
                    p[3 + k, j] = real(x - high)
                p[split + 3 + k, j] = real(v)
                p[split + 6 + k, j] = real(a)
            p[numbers - 1, j] = real(mass[j])
        half = THREADS // 2
        while half:
            cuda.syncthreads()
            if t < half:
                ends[t] = min(ends[t], ends[t + half])
            half //= 2
        if t == 0 and ends[0] < FAR:
            cuda.atomic.min(clock, (slot + 1) % 3, ends[0])

    @gpu.kernel(**gpu.FAST)
    def force(p, partial, listed, clock, scale, slot):
        """The sums of each share of all bodies: partial[(n * 9 + k) * shares + share] for the listed body n."""
        tile = cuda.shared.array((numbers, TILE), real)
        rest = cuda.shared.array((WARPS, 9, 32), real)
        t, block = cuda.threadIdx.x, cuda.blockIdx.x
        warp, lane = t // 32, t % 32
        number, count = clock[3 + slot], p.shape[1]
        if block == 0 and t == 0:
            now, following = clock[slot], (slot + 1) % 3
            if number == 0:  # nothing was predicted: the time stays
                clock[following] = now
            else:
                clock[REACHED] = now
                clock[BLOCKS_DONE] += 1
                clock[SINGLE] += number
            clock[(slot + 2) % 3] = FAR
            clock[3 + (slot + 2) % 3] = 0
        groups, tiles = (number + 31) // 32, (count + TILE - 1) // TILE
        shares = max(1, min(tiles, cuda.gridDim.x // max(1, groups)))
        each = (tiles + shares - 1) // shares
        length2 = real(scale[LENGTH2])
        work = block
        while work < groups * shares:
            group, share = work // shares, work % shares
            n = group * 32 + lane
            i = listed[n] if n < number else -1
            own = i if i >= 0 else 0
            xi, yi, zi = p[0, own], p[1, own], p[2, own]
            if mixed:
                xl, yl, zl = p[3, own], p[4, own], p[5, own]
            vxi, vyi, vzi = p[split + 3, own], p[split + 4, own], p[split + 5, own]
            axi, ayi, azi = p[split + 6, own], p[split + 7, own], p[split + 8, own]
            ax, ay, az, jx, jy, jz, sx, sy, sz = zero, zero, zero, zero, zero, zero, zero, zero, zero
            for number_of_tile in range(share * each, min(tiles, (share + 1) * each)):
                base = number_of_tile * TILE
                if t < TILE:
                    for k in range(numbers):
                        tile[k, t] = p[k, base + t] if base + t < count else zero
                cuda.syncthreads()
                for k in range(warp * (TILE // WARPS), (warp + 1) * (TILE // WARPS)):
                    dx, dy, dz = tile[0, k] - xi, tile[1, k] - yi, tile[2, k] - zi
                    if mixed:
                        dx, dy, dz = dx + (tile[3, k] - xl), dy + (tile[4, k] - yl), dz + (tile[5, k] - zl)
                    m = tile[numbers - 1, k]
                    vx, vy, vz = tile[split + 3, k] - vxi, tile[split + 4, k] - vyi, tile[split + 5, k] - vzi
                    dax, day, daz = tile[split + 6, k] - axi, tile[split + 7, k] - ayi, tile[split + 8, k] - azi
                    if not softened and (base + k == i or base + k >= count):  # itself: far away, and without mass
                        dx, m = one, zero
                    w, pw, qw, rw = weights(dx, dy, dz, vx, vy, vz, dax, day, daz, m, length2)
                    ax += w * dx
                    ay += w * dy
                    az += w * dz
                    jx += w * vx - pw * dx
                    jy += w * vy - pw * dy
                    jz += w * vz - pw * dz
                    if snap:
                        sx += w * dax - qw * vx + rw * dx
                        sy += w * day - qw * vy + rw * dy
                        sz += w * daz - qw * vz + rw * dz
                cuda.syncthreads()
            rest[warp, 0, lane], rest[warp, 1, lane], rest[warp, 2, lane] = ax, ay, az
            rest[warp, 3, lane], rest[warp, 4, lane], rest[warp, 5, lane] = jx, jy, jz
            rest[warp, 6, lane], rest[warp, 7, lane], rest[warp, 8, lane] = sx, sy, sz
            cuda.syncthreads()
            for k in range(warp, 9, WARPS):
                total = 0.0
                for w in range(WARPS):
                    total += rest[w, k, lane]
                if n < number:
                    partial[(n * 9 + k) * shares + share] = total
            cuda.syncthreads()
            work += cuda.gridDim.x

    @gpu.device_function
    def total(partial, n, shares, lane):
        """The nine sums of the listed body n, sum k in lane k: lanes k, k + 9 and k + 18 add a third of the shares each."""
        found = 0.0
        if lane < 27:
            share = lane // 9
            while share < shares:
                found += partial[(n * 9 + lane % 9) * shares + share]
                share += 3
        k = lane % 9
        return gpu.shuffle(found, k) + (gpu.shuffle(found, k + 9) + gpu.shuffle(found, k + 18))

    @gpu.device_function
    def sum_of_three(value):
        """The sum of the values of the lanes 0, 1 and 2."""
        return gpu.shuffle(value, 0) + (gpu.shuffle(value, 1) + gpu.shuffle(value, 2))

    @exact
    def largest(value, lane):
        """The largest of the values of a warp's lanes."""
        for bit in (1, 2, 4, 8, 16):
            value = max(value, gpu.shuffle(value, lane ^ bit))
        return value

    @exact
    def perturbation(i, p, mass, lane):
        """See :func:`.cpu_kernels.perturbation`; a warp computes it."""
        strongest, quickest, heavy = 0.0, 0.0, mass[i]
        for j in range(lane, mass.size, 32):
            if j != i:
                r2 = v2 = 0.0
                for k in range(3):
                    d, v = double(p[k, j]) - double(p[k, i]), double(p[split + 3 + k, j]) - double(p[split + 3 + k, i])
                    r2, v2 = r2 + d * d, v2 + v * v
                per_r2 = 1.0 / r2
                strongest = max(strongest, max(heavy, 2.0 * mass[j]) * per_r2 * math.sqrt(per_r2))
                quickest = max(quickest, v2 * per_r2)
        return largest(strongest, lane), largest(quickest, lane)

    @gpu.kernel
    def finish(rows, mass, limit, p, partial, last, step, wanted, listed, clock, scale, slot, force_blocks):
        """Correct the listed bodies, a component per lane, and choose their next steps."""
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number, tiles = clock[3 + slot], (last.size + TILE - 1) // TILE
        shares = max(1, min(tiles, force_blocks // max(1, (number + 31) // 32)))
        now, tick, G = clock[slot], scale[TICK], scale[STRENGTH]
        k = lane % 3
        first = cuda.blockIdx.x * WARPS
        while first < number:
            n = min(first + warp, number - 1)
            value = G * total(partial, n, shares, lane)
            a1, j1, s1 = gpu.shuffle(value, k), gpu.shuffle(value, 3 + k), gpu.shuffle(value, 6 + k)
            i = listed[n]
            x, v, snap1, crackle, fourth, fifth = correct_one(
                rows[k, i], rows[3 + k, i], rows[6 + k, i], rows[9 + k, i], rows[12 + k, i], a1, j1, s1, step[i] * tick
            )
            a, j, s = sum_of_three(a1 * a1), sum_of_three(j1 * j1), sum_of_three(snap1 * snap1)
            c, d, e = sum_of_three(crackle * crackle), sum_of_three(fourth * fourth), sum_of_three(fifth * fifth)
            strongest = quickest = 0.0
            if SIMULATED or (first + warp < number and limit[i] > 0.0):  # a pair's centre of mass; the simulator's threads all shuffle
                strongest, quickest = perturbation(i, p, mass, lane)
            if first + warp < number and lane < 3:
                rows[k, i], rows[3 + k, i], rows[6 + k, i] = x, v, a1
                rows[9 + k, i], rows[12 + k, i], rows[15 + k, i] = j1, snap1, crackle
            if first + warp < number and lane == 0:
                want = FOREVER if a + j + s == 0.0 else min(length(a, j, s, c, d, e, scale[ETA]), FOREVER)
                if limit[i] > 0.0:
                    want = min(want, APPROACH / math.sqrt(quickest))
                    if strongest > limit[i]:
                        limit[i] = -limit[i]
                        clock[EXCEEDED] = 1
                most = min(2 * step[i], clock[UNIT])
                while now & (most - 1):
                    most >>= 1
                wanted[i], last[i] = want, now
                step[i] = in_ticks(want, tick, most)
                if step[i] < clock[SMALLEST]:
                    cuda.atomic.max(clock, FAILED, i)
                cuda.atomic.min(clock, (slot + 1) % 3, now + step[i])
            first += cuda.gridDim.x * WARPS

    @gpu.kernel
    def store(rows, partial, listed, scale, force_blocks):
        """Keep the sums of all bodies as their acceleration, jerk and snap."""
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number, tiles = rows.shape[1], (rows.shape[1] + TILE - 1) // TILE
        shares = max(1, min(tiles, force_blocks // max(1, (number + 31) // 32)))
        first = cuda.blockIdx.x * WARPS
        while first < number:
            n = min(first + warp, number - 1)
            value = scale[STRENGTH] * total(partial, n, shares, lane)
            if lane < 9 and first + warp < number:
                rows[6 + lane, listed[n]] = value
            first += cuda.gridDim.x * WARPS

    @gpu.kernel
    def present(rows, body, velocity, last, now, tick):
        """All bodies at one time, in the layout of a :class:`~nbody.state.device.DeviceState`."""
        j = cuda.grid(1)
        if j < last.size:
            h = (now - last[j]) * tick
            for k in range(3):
                x, v, _ = predict_one(
                    rows[k, j], rows[3 + k, j], rows[6 + k, j], rows[9 + k, j], rows[12 + k, j], rows[15 + k, j], h
                )
                body[j, k], velocity[j, k] = x, v

    @gpu.kernel
    def resolve(body, velocity, first, second, relative, share):
        """Replace the centres of mass of pairs by both bodies; ``relative`` (6, n): separations and velocities."""
        n = cuda.grid(1)
        if n < first.size:
            i, j = first[n], second[n]
            for k in range(3):
                x, v = body[i, k], velocity[i, k]
                body[i, k], body[j, k] = x + share[n] * relative[k, n], x - (1.0 - share[n]) * relative[k, n]
                velocity[i, k] = v + share[n] * relative[3 + k, n]
                velocity[j, k] = v - (1.0 - share[n]) * relative[3 + k, n]

    return Kernels(begin, predict, force, finish, store, present, resolve)


class Blocks:
    """The loop over blocks of one state on the device, with the interface of :class:`.cpu.Blocks`."""

    def __init__(self, motion: Motion, order: int, eta: float, shared: bool = False, threshold: float = 0.0) -> None:
        state: Any = motion.state
        gravity, self._order, self._eta = motion.engine.gravity, order, eta
        self._state, self._law, self._mixed = state, gravity.softening, motion.engine.precision == "mixed"
        self._constants = gravity.G, gravity.length2
        self._kernels = kernels_for(self._law, order, self._mixed, shared=shared)
        count, real = state.count, np.float32 if self._mixed else np.float64
        self._rows = state.derivatives.reshape(18, count)
        ticks = state.ticks.reshape(2, count)
        self._last, self._step = ticks[0], ticks[1]
        masses = np.array(state.body.copy_to_host()[:, 3], np.float64)
        self.pairs = Pairs(gravity, order, eta, masses, threshold)
        self._mass, self._limit = cuda.to_device(masses), cuda.to_device(np.zeros(count))
        self._p = cuda.device_array((rows_per_body(self._mixed), count), real)
        self._listed = cuda.device_array(count, np.int64)
        self._clock, self._scale = cuda.device_array(CLOCK, np.int64), cuda.device_array(4, np.float64)
        sums, mixed = np.empty(1), self._mixed  # of the types of the kernel's arguments
        arguments = self._p, cuda.to_device(sums), self._listed, self._clock, self._scale, 0
        self._force_blocks = min(
            gpu.resident_blocks(kernels_for(self._law, order, mixed, first).force, arguments, THREADS)
            for first in (False, True)
        )
        self._partial = cuda.device_array(32 * 9 * max(-(-count // 32), self._force_blocks), np.float64)
        self.restored()
        self._graph: Graph | None = None
        self._warm = False

    def restored(self) -> None:
        """The state's columns have been restored from a checkpoint."""
        self._next, self._now = -1, 0  # the end of the next block, -1: to be found; and that of the last one
        self._orbits: Orbits | None = None

    def _joined(self) -> Orbits:
        """The joined pairs; after a restore, masses and limits follow from them."""
        if self._orbits is None:
            self._pairs_changed(self._bodies())
        assert self._orbits is not None
        return self._orbits

    def _bodies(self) -> Bodies:
        """The bodies on the host."""
        self._state.stream.synchronize()
        columns = self._rows, self._last, self._step, self._state.wanted_step, self._mass, self._limit
        return Bodies(*(column.copy_to_host() for column in columns))

    def _pairs_changed(self, b: Bodies) -> None:
        """Copy the bodies to the device, after pairs have joined or parted."""
        self._orbits = self.pairs.orbits(b.rows, b.last, b.step)
        b.mass[:], b.limit[:] = self.pairs.masses_and_limits(self._orbits)
        columns = self._rows, self._last, self._step, self._state.wanted_step, self._mass, self._limit
        for column, values in zip(columns, b, strict=True):
            column.copy_to_device(values)
        self._next = -1

    def first_derivatives(self) -> np.ndarray:
        """Evaluate acceleration, jerk and snap of all bodies, in two passes over the pairs. Returns all, (18, N)."""
        state = self._state
        state.settle()
        rows = np.zeros((18, state.count))
        rows[:3], rows[3:6] = state.body.copy_to_host()[:, :3].T, state.velocity.copy_to_host()[:, :3].T
        self._rows.copy_to_device(rows)
        for ticks in (self._last, self._step):
            ticks.copy_to_device(np.zeros(state.count, np.int64))
        self.pairs.parted = self.pairs.joined
        self._orbits = None
        self._joined()
        kernels = kernels_for(self._law, self._order, self._mixed, first=True)
        for _ in range(2):  # the second one knows the accelerations
            self._set_clock(0.0, 0, 0, 0, 1, 1)
            self._predict(kernels, 0)
            self._force(kernels, 0)
            kernels.store[self._grid(state.count * 32), THREADS, state.stream](
                self._rows, self._partial, self._listed, self._scale, self._force_blocks
            )
        state.stream.synchronize()
        return self._rows.copy_to_host()

    def set_wanted(self, wanted: np.ndarray) -> None:
        """Set the steps that accuracy asks for, (N,)."""
        self._state.wanted_step.copy_to_device(wanted)

    def shortest_wanted(self) -> float:
        """The shortest step that accuracy asks for."""
        return float(self._state.wanted_step.copy_to_host().min())

    def new_stretch(self, before: float, tick: float, unit: int, smallest: int) -> int:
        """All bodies are at the same time, 0 ticks from now on; ``before``: the length of a tick until now. Joins pairs.
        Returns a body whose step is too short, or -1."""
        state, orbits = self._state, self._joined()
        if len(orbits.first):
            b = self._bodies()
            self.pairs.begin_stretch(b, orbits, TICKS, before)
            self._pairs_changed(b)
        self._set_clock(tick, FAR, 0, unit, smallest, 0)
        self._kernels.begin[self._grid(state.count), THREADS, state.stream](
            self._last, self._step, state.wanted_step, self._clock, self._scale
        )
        state.stream.synchronize()
        clock = self._clock.copy_to_host()
        self._next, self._now = int(clock[0]), 0
        self.look(tick, unit)
        return int(clock[FAILED])

    def look(self, tick: float, unit: int) -> None:
        """Join the pairs that are hardly perturbed at present."""
        if self.pairs.threshold == 0.0:
            return
        self._joined()
        ticks = self._last.copy_to_host(), self._step.copy_to_host()
        if len(self.pairs.candidates(*ticks, self._limit.copy_to_host(), self._now)) > 1:
            b = self._bodies()
            if self.pairs.join(b, self._now, tick, unit):
                self._pairs_changed(b)

    def advance(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> tuple[int, int, int, int]:
        """Make up to ``steps`` blocks, or all until ``end``. Returns the number of blocks, the time reached in ticks, the
        steps of single bodies, and a body whose step would be too short, or -1."""
        self._joined()
        made = single = reached = 0
        while True:
            clock = self._blocks_until(tick, end, unit, smallest, steps - made)
            made, single = made + int(clock[BLOCKS_DONE]), single + int(clock[SINGLE])
            reached, failed = int(clock[REACHED]) or reached, int(clock[FAILED])
            self._now = reached or self._now
            if clock[EXCEEDED]:
                b = self._bodies()
                self.pairs.part(b, self._now, tick, unit)
                self._pairs_changed(b)
            if not clock[EXCEEDED] or failed >= 0:
                return made, reached, single, failed

    def _blocks_until(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> np.ndarray:
        """Make up to ``steps`` blocks, or all until ``end``, or until a pair is to part. Returns the clock."""
        if self._next < 0:
            self._next = int((self._last.copy_to_host() + self._step.copy_to_host()).min())
        self._set_clock(tick, self._next, end, unit, smallest, steps)
        graphs = 1
        while True:
            for _ in range(graphs):
                self._blocks()
            self._state.stream.synchronize()
            clock = self._clock.copy_to_host()
            self._next = int(clock[:3].min())
            left = steps - int(clock[BLOCKS_DONE])
            if left <= 0 or self._next > end or clock[FAILED] >= 0 or clock[EXCEEDED]:
                return clock
            graphs = min(MOST_GRAPHS, 2 * graphs, -(-left // BLOCKS_PER_GRAPH))

    def step_to(self, end: int) -> None:
        """Let the next steps of all bodies end at the time ``end``, in ticks."""
        self._state.stream.synchronize()
        last, step = self._last.copy_to_host(), self._step.copy_to_host()
        self._step.copy_to_device(np.where((last < end) & (step < PARKED), end - last, step))
        self._next = -1

    def present(self, now: int, tick: float) -> None:
        """Predict all bodies to one time, into the state's positions and velocities."""
        state = self._state
        self._kernels.present[self._grid(state.count), THREADS, state.stream](
            self._rows, state.body, state.velocity, self._last, now, tick
        )
        orbits = self._joined()
        if len(orbits.first):
            relative = cuda.to_device(np.concatenate(orbits.at(now, tick)))
            first, second, share = map(cuda.to_device, (orbits.first, orbits.second, orbits.share))
            self._kernels.resolve[self._grid(len(orbits.first)), THREADS, state.stream](
                state.body, state.velocity, first, second, relative, share
            )
            state.stream.synchronize()  # the arrays are needed until then

    def _set_clock(self, tick: float, following: int, end: int, unit: int, smallest: int, budget: int) -> None:
        clock = np.zeros(CLOCK, np.int64)
        clock[:3], clock[END], clock[UNIT], clock[SMALLEST], clock[BUDGET] = FAR, end, unit, smallest, budget
        clock[0], clock[FAILED] = following, -1
        self._state.stream.synchronize()
        self._clock.copy_to_device(clock)
        G, length2 = self._constants
        self._scale.copy_to_device(np.array([tick, self._eta, G, length2]))

    def _blocks(self) -> None:
        """Twenty-four blocks, as one graph once the kernels are compiled."""
        if SIMULATED or not self._warm:
            for slot in range(3):
                self._block(slot)
            self._warm = True
        else:
            if self._graph is None:
                self._graph = Graph(self._state.stream, self._many)
            self._graph.replay()

    def _many(self) -> None:
        for k in range(BLOCKS_PER_GRAPH):
            self._block(k % 3)

    def _block(self, slot: int) -> None:
        state = self._state
        self._predict(self._kernels, slot)
        self._force(self._kernels, slot)
        grid = min(self._grid(state.count * 32), self._force_blocks)
        self._kernels.finish[grid, THREADS, state.stream](
            self._rows, self._mass, self._limit, self._p, self._partial, self._last, self._step, state.wanted_step,
            self._listed, self._clock, self._scale, slot, self._force_blocks,
        )  # fmt: skip

    def _predict(self, kernels: Kernels, slot: int) -> None:
        kernels.predict[self._grid(self._state.count), THREADS, self._state.stream](
            self._rows, self._mass, self._p, self._last, self._step, self._listed, self._clock, self._scale, slot
        )

    def _force(self, kernels: Kernels, slot: int) -> None:
        kernels.force[self._force_blocks, THREADS, self._state.stream](
            self._p, self._partial, self._listed, self._clock, self._scale, slot
        )

    @staticmethod
    def _grid(threads: int) -> int:
        return -(-threads // THREADS)
