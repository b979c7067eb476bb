"""Bodies that bounce: a step ends at the contact if the scheme can show it; bodies at rest on one another make hops."""

import numpy as np
import pytest

from nbody import Particles, Simulation
from nbody.errors import InputError, RunFailed
from nbody.run.resume import resume
from nbody.trajectory import first_difference

NEWTON = {"softening": "none", "precision": "float64", "engine": "cpu"}


def bouncing(bodies, scheme="ias15", output=None, restitution=1.0, **values):
    rule = {"rule": "bounce", "restitution": restitution}
    return Simulation(bodies, output, integrator=scheme, **{"collisions": rule, **NEWTON, **values})


def falling():
    return Particles([0.5, 0.5], [[-0.5, 0, 0], [0.5, 0, 0]], np.zeros((2, 3)), radius=[0.1, 0.1])


def billiard(count=12):
    """Spheres that fly together, whose gravity matters: they meet some 16 times until t = 1."""
    rng = np.random.default_rng(1)
    x = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), -1).reshape(-1, 3)[:count] - 1 + rng.uniform(-0.1, 0.1, (count, 3))
    return Particles(np.full(count, 0.02), x, rng.normal(size=(count, 3)) - 3 * x, radius=np.full(count, 0.25))


@pytest.mark.parametrize(
    ("scheme", "error"),
    [
        ("ias15", 1e-12),
        ({"scheme": "hermite4", "eta": 0.01}, 1e-3),  # the errors of the schemes themselves, of order 4 and 2
        ("leapfrog_adaptive", 1e-3),
        ("hermite4_block", 1e-3),
    ],
)
def test_spheres_that_fall_onto_each_other_keep_their_energy(scheme, error):
    run = bouncing(falling(), scheme)
    done = run.integrate(10.0)
    assert done.collisions == 5 and abs(done.energy_error) < error
    speed = np.sqrt(2 * (1 / 0.2 - 1))  # from rest at a distance of 1
    if scheme == "ias15":
        assert run.events["speed"].to_numpy() == pytest.approx(np.full(5, speed), rel=1e-12)
        assert run.events["distance"].to_numpy() == pytest.approx(np.full(5, 0.2), rel=1e-13)
        gaps = np.diff(run.events["time"])
        assert gaps == pytest.approx(np.full(4, gaps[0]), rel=1e-12)


def test_spheres_that_bounce_in_an_external_well_stand_still_between_without_ending_the_adaptive_steps():
    bodies = Particles([1e-3, 1e-3], [[-1, 0, 0], [1, 0.02, 0]], np.zeros((2, 3)), radius=[0.05, 0.05])
    well = [{"field": "plummer", "mass": 1, "b": 1}]
    done = bouncing(bodies, "leapfrog_adaptive", dt=0.02, fields=well).integrate(10.0)
    assert done.collisions == 2 and abs(done.energy_error) < 1e-5


def test_a_bounce_within_a_step_of_fixed_length_costs_an_error_of_second_order():
    """Sixteen times as many steps: 256 times less; the place of the contact within a step varies it by a few times."""
    coarse, fine = (abs(bouncing(falling(), "leapfrog", dt=dt).integrate(4.0).energy_error) for dt in (2**-9, 2**-13))
    assert fine < coarse / 50 and fine < 1e-4


@pytest.mark.parametrize(
    "scheme,message",
    [("yoshida4", "errs by dt²"), ("hermite4_block", "errs by dt²")],
)
def test_a_scheme_that_does_not_end_its_steps_at_bounces_says_what_that_costs(scheme, message):
    said = list[str]()
    bouncing(falling(), scheme, dt=2**-9, notify=said.append)
    assert sum(message in line for line in said) == 1


def test_bodies_do_not_bounce_after_they_have_passed_through_each_other():
    with pytest.raises(InputError, match=r"through each other before they bounce; choose scheme .* ias15"):
        bouncing(falling(), "hybrid", dt=2**-9)


def test_a_billiard_is_resumed_and_copied_between_bounces_with_the_same_bits(tmp_path):
    values = {"record": {"dt": 0.1}, "end": 1.0}
    run = bouncing(billiard(), "ias15", tmp_path / "whole.h5", **values)
    done = run.run()
    assert done.collisions >= 10 and abs(done.energy_error) < 1e-12
    other = bouncing(billiard(), "ias15", tmp_path / "part.h5", **values)
    for time in (0.2345, 0.24, 0.5):
        other.integrate(time)
        assert other.time == time
    copy = other.copy()
    resume(tmp_path / "part.h5", notify=lambda line: None).integrate(1.0)
    assert first_difference(tmp_path / "whole.h5", tmp_path / "part.h5") is None
    copy.integrate(1.0)
    assert (copy.particles.position == run.particles.position).all() and copy.steps_made == run.steps_made


@pytest.mark.parametrize("scheme", ["ias15", "leapfrog_adaptive"])
def test_events_in_steps_that_end_in_a_bounce_are_on_the_path_before_it(scheme):
    """Two spheres that meet head-on are at a distance of 0.22 just before they touch at 0.2, and again after it."""
    bodies = Particles([1e-9, 1e-9], [[0, -1, 0], [0, 1.0, 0]], [[0, 1.0, 0], [0, -1.0, 0]], radius=[0.1, 0.1])
    limits = (
        {"kind": "distance", "bodies": [0, 1], "below": 0.22},
        {"kind": "distance", "bodies": [0, 1], "above": 0.22},
    )
    found = []
    for ends in ((2.0,), (0.5, 0.895, 2.0), (0.88, 0.9, 0.905, 2.0)):
        run = bouncing(bodies, scheme, dt=0.3, events=list(limits))
        for end in ends:
            run.integrate(end)
        rows = run.events[run.events["kind"] == "distance"]
        found.append(rows["time"].to_numpy())
        assert found[-1] == pytest.approx([0.89, 0.91], abs=1e-6)
        assert (found[-1] == found[0]).all()


def test_speeds_after_bounces_are_those_of_the_restitution_until_bodies_rest_in_small_hops():
    ball = Particles([1.0, 1e-9], [[0, 0, 0], [2.0, 0, 0]], np.zeros((2, 3)), radius=[1.0, 0.0])
    run = bouncing(ball, restitution=0.5)
    done = run.integrate(5.0)
    speeds = run.events["speed"].to_numpy()
    assert speeds[:7] == pytest.approx(0.5 ** np.arange(7), rel=1e-9)  # v²/2 at the surface gives the height
    hop = 0.01 * np.sqrt(2)  # of the escape speed
    assert len(speeds) > 10 and speeds[10:] == pytest.approx(np.full(len(speeds) - 10, hop), rel=1e-9)
    assert abs(done.energy_error) < 1e-12 and done.collision_energy == pytest.approx(-0.5e-9, rel=1e-3)


@pytest.mark.parametrize("restitution", [0.0, 0.9])
def test_a_pile_of_spheres_does_not_sink_into_itself(restitution):
    x = np.array([[0, 0, 0], [0.2, 0, 0], [0.45, 0.1, 0], [-0.3, 0.05, 0.02]])
    run = bouncing(Particles([0.3] * 4, x, np.zeros((4, 3)), radius=[0.1] * 4), restitution=restitution)
    done = run.integrate(0.4)
    i, j = np.triu_indices(4, 1)
    assert done.collisions > 10 and abs(done.energy_error) < 1e-12
    assert np.linalg.norm(run.particles.position[i] - run.particles.position[j], axis=1).min() > 0.2 * (1 - 1e-9)


def test_bounces_without_end_stop_the_run_with_the_fix():
    """Bodies without mass about a heavy one have no escape speed of their own."""
    x = [[0, 0, 0], [1, 0, 0], [1.1, 0, 0]]
    bodies = Particles([1.0, 0, 0], x, [[0, 0, 0], [0, 1, 0], [0, 0.9, 0]], radius=[0.01, 0.05, 0.05])
    one = bouncing(bodies, collisions={"rule": "bounce", "restitution": 0.0, "minimum_speed": 0.01})
    assert one.integrate(0.2).collisions < 100
    for wrong, said in ({"rule": "merge", "minimum_speed": 1}, "belongs to rule 'bounce'"), (
        {"rule": "bounce", "minimum_speed": 0}, "must be greater than 0, got 0"
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            bouncing(bodies, collisions=wrong)


# --- Outcomes of a user's own -----------------------------------------------------------------------------------------


def chance(calls, seed=0):
    """A function with a memory: of ten contacts one turns the bodies round."""
    rng = np.random.default_rng(seed)

    def outcome(pair):
        calls.append((pair.time, *pair.id.tolist()))
        if rng.random() < 0.9:
            return None
        pair.velocity[:] = pair.velocity[::-1].copy()
        return pair

    return outcome


def deciding(bodies, outcome, scheme="ias15", **values):
    values = {"integrator": scheme, **NEWTON, **values}
    return Simulation(bodies, values.pop("output", None), on_collision=outcome, **values)


def test_a_function_is_asked_once_about_each_contact_however_a_run_is_divided(tmp_path):
    found = []
    for count in (1, 10, 37):
        calls = []
        run = deciding(billiard(), chance(calls))
        for time in np.linspace(0, 0.5, count + 1)[1:]:
            run.integrate(float(time))
            assert len(calls) == np.count_nonzero(run.events["kind"] == "contact")  # known when it has happened
        found.append((calls, run.particles.position.tobytes(), run.particles.velocity.tobytes(), run.steps_made))
    assert found[0] == found[1] == found[2] and len(found[0][0]) > 20
    calls, path = [], tmp_path / "run.h5"
    outcome = chance(calls)  # the memory goes from one to the other
    run = deciding(billiard(), outcome, output=path, end=0.5, record={"dt": 0.1})
    run.integrate(0.3)
    resume(path, notify=lambda line: None, on_collision=outcome).integrate(0.5)
    assert calls == found[0][0]


def test_a_function_is_asked_about_every_contact_of_a_step_that_ends_there_and_once_for_a_body_in_others():
    """Body 0 meets 1 and then 2 in one step."""
    x = [[0, 0, 0], [0.5, 0.1, 0], [0.5, -0.1001, 0]]
    bodies = Particles([1e-9] * 3, x, [[1, 0, 0], [0, 0, 0], [0, 0, 0]], radius=[0.1] * 3)
    for scheme, pairs in (("ias15", [(0, 1), (0, 2)]), ("leapfrog", [(0, 1)])):
        run = deciding(bodies, lambda pair: None, scheme, dt=1.0)
        run.integrate(1.0 if scheme == "leapfrog" else 0.335)
        first = run.events[run.events["step"] == run.events["step"].min()]
        assert list(zip(first["id_1"], first["id_2"], strict=True)) == pairs, scheme


@pytest.mark.parametrize("scheme", ["ias15", "leapfrog"])
def test_energy_and_fragments_are_those_of_the_contact_that_made_them(scheme):
    """Bodies 0 and 1 pass through each other; 2 and 3, and then 4 and 5, part more slowly, each pair with two fragments."""
    x, v = np.zeros((6, 3)), np.zeros((6, 3))
    x[:, 0], x[:, 1] = np.repeat([0, 5, 10], 2), [-0.9, 0.9, -1, 1, -1.1, 1.1]
    x[1, 0] = 0.05
    v[:, 1] = [1, -1] * 3
    bodies = Particles([1e-9] * 6, x, v, radius=[0.1] * 6)

    def outcome(pair):
        if 0 in pair.id:
            return None
        pieces = np.vstack([pair.position, pair.position + np.array([[0, 0, 1], [0, 0, 2]])])
        motion = np.vstack([-0.5 * pair.velocity, np.zeros((2, 3))])
        return Particles([*pair.mass, 1e-12, 1e-12], pieces, motion, radius=[0.1, 0.1, 0.01, 0.01])

    run = deciding(bodies, outcome, scheme, dt=1.25)
    done = run.integrate(1.25)
    rows = run.events[run.events["kind"] == "contact"]
    first = [int(min(pair)) for pair in zip(rows["id_1"], rows["id_2"], strict=True)]
    lost = -0.75 * 2 * 0.5e-9
    for pair, energy in zip(first, rows["energy_change"], strict=True):
        assert energy == pytest.approx(lost if pair else 0.0, rel=1e-6), pair  # attraction: G m / v² r
    assert {0, 2, 4} == set(first) and done.collision_energy == rows["energy_change"].sum()
    assert run.particles.id.tolist() == list(range(10))


def test_bodies_that_rest_on_one_another_end_a_run_with_the_fix_also_if_it_is_copied_at_each_step():
    bodies = Particles([1e-30, 1e-30], [[0, 0, -0.05], [0, 0, 0.06]], np.zeros((2, 3)), radius=[0.05, 0.05])
    said, fields = [], [{"field": "plummer", "mass": 1.0, "b": 0.2}]
    for divided in (False, True):
        scheme = {"scheme": "hermite4", "eta": 0.1}
        run = bouncing(bodies, scheme, dt=0.05, engine="reference", restitution=0.5, fields=fields)
        line = r"\(ids\) rest on one another at t = .*give collisions.minimum_speed"
        with pytest.raises(RunFailed, match=line) as error:
            while divided and run.steps_made < 1_000:
                run = run.copy()
                run.run(1)
            run.integrate(5.0)
        said.append(str(error.value))
    assert said[0] == said[1]
    with pytest.raises(RunFailed, match=line):
        bouncing(bodies, restitution=0.5, fields=fields).integrate(5.0)


@pytest.mark.parametrize("scheme", [{"scheme": "leapfrog_adaptive", "dt": 1.0}, {"scheme": "hermite4", "eta": 0.02}])
def test_contacts_that_change_nothing_where_a_step_begins_do_not_hold_the_run_up(scheme):
    """Two bodies overlap all the time, so each step in which they approach begins with a contact."""
    x, v = [[0, 0, 0], [1, 0, 0], [1.05, 0, 0]], [[0, 0, 0], [0, 1, 0], [0, 0.97, 0]]
    ends = []
    for divisions in (1, 7):
        asked = []
        rule = {"collisions": {"rule": "function", "radius": 0.05}, "on_collision": asked.append}
        simulation = Simulation(Particles([1, 1e-3, 1e-3], x, v), integrator=scheme, **{**NEWTON, "softening": 0.01}, **rule)
        for k in range(divisions):
            simulation.integrate((k + 1) / divisions / 2)
        ends.append((simulation.steps_made, len(asked), simulation.particles.position.tobytes()))
    assert ends[0] == ends[1] and ends[0][1] > 10
