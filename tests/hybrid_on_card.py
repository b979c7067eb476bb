"""Times the hybrid on a card, after its results are compared with the CPU's: ``python tests/hybrid_on_card.py [seconds]``.

It prints steps per second for discs of 10³, 10⁴ and 65536 planetesimals (three Earth masses from 0.5 to 1.5 au, e = 0.01,
steps of 6 days), pairs that meet per step, where the time goes, and the energy error.
"""

import sys
import time
from collections import defaultdict

import numpy as np

import nbody
from nbody.integrators.solvers.hybrid_gpu import DeviceHybrid

BEGAN, SPENT, MET = time.perf_counter(), defaultdict(float), []
DT = 0.1


def timed(name):
    """Add up the seconds in a method."""
    method = getattr(DeviceHybrid, name)

    def call(self, *arguments):
        begun = time.perf_counter()
        found = method(self, *arguments)
        self.state.stream.synchronize()
        SPENT[name] += time.perf_counter() - begun
        if name == "_step":
            MET.append((len(found[2].pairs), len(found[2].found.hurried)))
        return found

    setattr(DeviceHybrid, name, call)


def say(*words):
    print(f"{time.perf_counter() - BEGAN:6.1f} s ", *words, flush=True)


def disc(count, engine, **more):
    bodies = nbody.planetesimals(count + 1, mass=1e-5, inner=0.5, outer=1.5, dimensions=3)
    return nbody.Simulation(
        bodies, integrator="hybrid", dt=DT, engine=engine, precision="float64", softening="none", **more
    )


def energy(run):
    return run.kinetic_energy + run.potential_energy


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
    for name in ("_step", "_evaluate", "_look", "_move", "_kick_apart"):
        timed(name)
    for count in (1000, 10000, 65536):
        run = disc(count, "gpu-symmetric" if count > 2000 else "gpu-tiled")
        first = energy(run)
        run.step(3)
        SPENT.clear()
        MET.clear()
        begun, steps = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            run.step(10)
            steps += 10
        spent = time.perf_counter() - begun
        parts = ", ".join(f"{name} {1e3 * each / steps:.3f}" for name, each in SPENT.items())
        pairs, hurried = np.mean(MET, axis=0)
        say(
            f"N = {count}: {steps / spent:.1f} steps/s; pairs {pairs:.1f}, near the star {hurried:.1f}; ms per step: {parts}"
        )
        say(f"    energy error {abs(energy(run) / first - 1):.1e} after {steps + 3} steps")
    run = disc(10000, "cpu")
    run.step(1)
    begun = time.perf_counter()
    run.step(5)
    say(f"CPU, N = 10000: {5 / (time.perf_counter() - begun):.2f} steps/s")


main(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0)
