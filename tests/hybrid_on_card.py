"""Times the hybrid on a card, after its results are compared with the CPU's: ``python tests/hybrid_on_card.py [seconds]``.

It prints steps per second for discs of 10³, 10⁴ and 65536 planetesimals (three Earth masses from 0.5 to 1.5 au, e = 0.01,
steps of 6 days), the groups that meet in a step, how long the parts of a step take on the card, and the energy error.
"""

import sys
import time

import numpy as np

import nbody
from nbody import compute
from nbody.integrators.solvers.hybrid_gpu import DeviceHybrid

BEGAN, DT, GROUPS, MADE = time.perf_counter(), 0.1, [], []
step_of, init_of = DeviceHybrid._step, DeviceHybrid.__init__


def step(self, *arguments):
    found = step_of(self, *arguments)
    GROUPS.append((len(self._groups._groups), len(self._groups._members)))
    return found


def init(self, *arguments):
    init_of(self, *arguments)
    MADE.append(self)


DeviceHybrid._step, DeviceHybrid.__init__ = step, init


def say(*words):
    print(f"{time.perf_counter() - BEGAN:6.1f} s ", *words, flush=True)


def disc(count, engine, **more):
    bodies = nbody.planetesimals(count + 1, mass=1e-5, inner=0.5, outer=1.5, dimensions=3)
    return nbody.Simulation(bodies, integrator="hybrid", dt=DT, engine=engine, precision="float64", softening="none", **more)


def energy(run):
    return run.kinetic_energy + run.potential_energy


def parts(device):
    """Milliseconds of the parts of a step, launched one by one."""
    kinds = device._groups.kinds
    work = {
        "evaluate": device._evaluate,
        "search": lambda: device._search(DT),
        "move": lambda: device._move(DT, False, kinds),
        "kick apart": lambda: device._kick_apart(0.0, kinds),
    }
    return ", ".join(f"{name} {compute.milliseconds(part, 5, 3, device._stream):.3f}" for name, part in work.items())


def main(seconds):
    runs = [disc(1000, "gpu-symmetric"), disc(1000, "gpu-symmetric"), disc(1000, "cpu")]
    first = energy(runs[0])
    for run in runs:
        run.step(20)
        say("20 steps of 1000 bodies: energy error", f"{abs(energy(run) / first - 1):.1e}")
    x = [run.particles.position for run in runs]
    say("same bits twice:", (x[0] == x[1]).all(), "largest difference from the CPU:", np.abs(x[0] - x[2]).max())
    begun = time.perf_counter()
    runs[2].step(100)
    say(f"CPU: {100 / (time.perf_counter() - begun):.0f} steps/s")
    for count in (1000, 2000, 10000, 65536):
        run = disc(count, "gpu-symmetric" if count > 2000 else "gpu-tiled")
        first = energy(run)
        run.step(5)
        GROUPS.clear()
        begun, steps = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            run.step(20)
            steps += 20
        run.particles.position  # noqa: B018  (waits)
        spent = time.perf_counter() - begun
        groups, members = np.mean(GROUPS, axis=0)
        say(f"N = {count}: {steps / spent:.1f} steps/s; groups {groups:.1f}, members {members:.1f}")
        say(f"    energy error {abs(energy(run) / first - 1):.1e} after {steps + 5} steps")
        say(f"    ms: {parts(MADE[-1])}")


main(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0)
