"""Every kind of field with every scheme: it moves bodies as ias15 does, or is refused with one line."""

import math

import numpy as np
import pytest

import nbody
from nbody.errors import InputError
from nbody.fields.planets import J2, Companion, Migration, Radiation, Tides
from nbody.fields.potentials import RotatingBar
from nbody.integrators import INTEGRATORS

BODIES = nbody.planets(bodies=[{"m": 1.0}, {"m": 1e-3, "a": 1.0, "e": 0.05}, {"m": 5e-4, "a": 2.0, "e": 0.03, "inc": 3}])


def turning(x, y, z, vx, vy, vz, t):
    """A drag, a force across the velocity, and one that changes with time."""
    return -0.02 * vx + 0.05 * vy + 0.02 * math.sin(1.3 * t), -0.02 * vy - 0.05 * vx, -0.01 * z


KINDS = {
    "of position and time": [RotatingBar(mass=0.05, a=3.0, c=1.0, omega=0.5)],
    "of velocity and time": [nbody.force(turning)],
    "about a body": [J2(j2=0.01, radius=0.3), Companion(mass=0.5, distance=12.0)],
    "about a body, of velocity": [
        Tides(k2=0.3, radius=0.2, tau=0.01),
        Migration(tau_a=300.0),
        Radiation(beta=0.1, c=50.0),
    ],
    "relativity": [{"field": "post_newtonian", "c": 40.0}],
    "relativity of all": [{"field": "post_newtonian", "c": 40.0, "by": "all"}],
}
"""Each changes positions by more than 1e-3 in the time of the test, so that a field that is left out is seen."""

TIME = 2.0
SERVED = {
    "of position and time": {*INTEGRATORS},
    "of velocity and time": {"hermite4", "hermite4_block", "hermite6_block", "ias15", "wisdom_holman", "hybrid"},
    "about a body": {*INTEGRATORS} - {"hermite4_block", "hermite6_block"},
    "about a body, of velocity": {"hermite4", "ias15", "wisdom_holman", "hybrid"},
    "relativity": {"ias15", "wisdom_holman", "hybrid"},
    "relativity of all": {"ias15"},
}
"""What the documentation says."""


def end_of(scheme, fields, softening):
    facts = INTEGRATORS.load(scheme).facts
    dt = None if facts.adaptive and scheme != "leapfrog_adaptive" else TIME / (2**16 if facts.order == 1 else 2**11)
    law = {"softening": softening} if softening else {}
    simulation = nbody.Simulation(
        BODIES,
        integrator={"scheme": scheme} | ({"dt": dt} if dt else {}),
        fields=fields,
        engine="cpu",
        precision="float64",
        **law,
    )
    simulation.integrate(TIME)
    return simulation.particles.position


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_a_field_moves_bodies_as_in_ias15_or_is_refused(kind):
    """The loosest scheme that is served is of order 2 with 2048 steps, or the lecture's of order 1 with 65536."""
    exact, served = {}, set()
    for scheme in INTEGRATORS:
        softening = 0.05 if INTEGRATORS.load(scheme).facts.softened else None
        try:
            found = end_of(scheme, KINDS[kind], softening)
        except InputError as error:
            assert str(error).startswith("fields: ") and f"scheme {scheme!r}" in str(error)
            continue
        served.add(scheme)
        if softening not in exact:
            exact[softening] = end_of("ias15", KINDS[kind], softening), end_of("ias15", (), softening)
        assert np.abs(exact[softening][0] - exact[softening][1]).max() > 1e-3
        error = np.abs(found - exact[softening][0]).max()
        print(kind, scheme, f"{error:.1e}")
        assert error < 1e-4, scheme
    assert served == SERVED[kind]
