"""``combine``: several sets of bodies, each rotated, moved and named; the same bits for the same seed."""

import numpy as np
import pytest

from nbody.errors import InputError
from nbody.initial import make_particles, number_of_bodies, resolved_initial
from nbody.initial.combine import apportioned, rotation
from nbody.scenario import Scenario
from nbody.scenario.bodies import Rotation

REST = "\ngravity: {dimensions: 3}\nintegrator: {dt: 0.01, steps: 1}\n"
TWO = """initial:
  combine:
    - {generator: plummer, particles: 30}
    - {generator: plummer, particles: 10, offset: [10, 0, 0], velocity: [0, -1, 0], species: guest}
  seed: 4
"""


def scenario(text: str, folder=".") -> Scenario:
    return Scenario.from_text(text + REST, "run.yaml", folder)


def said(text: str, folder=".") -> str:
    with pytest.raises(InputError) as caught:
        make_particles(scenario(text, folder))
    return str(caught.value)


def test_parts_keep_their_shape_and_get_their_place_and_name():
    bodies = make_particles(scenario(TWO))
    assert bodies.count == 40 == number_of_bodies(scenario(TWO)) and len(set(bodies.id)) == 40
    assert bodies.species_names == ("plummer", "guest") and bodies.species.tolist() == [0] * 30 + [1] * 10
    host, guest = bodies.position[:30], bodies.position[30:]
    np.testing.assert_allclose(host.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(guest.mean(axis=0), [10, 0, 0], atol=1e-14)
    np.testing.assert_allclose(bodies.velocity[30:].mean(axis=0), [0, -1, 0], atol=1e-14)


def test_each_part_has_its_own_random_numbers_and_the_whole_is_repeatable():
    same = TWO.replace("particles: 30", "particles: 10").replace("offset: [10, 0, 0], velocity: [0, -1, 0], ", "")
    one, again = make_particles(scenario(same)), make_particles(scenario(same))
    assert one.position.tobytes() == again.position.tobytes()
    assert not np.array_equal(one.position[:10], one.position[10:])
    other = make_particles(scenario(same.replace("seed: 4", "seed: 5")))
    assert not np.array_equal(one.position, other.position)
    # A part that names its seed is what its generator makes alone with this seed.
    own = make_particles(scenario(same.replace("species: guest", "species: guest, seed: 9")))
    alone = make_particles(scenario("initial: {generator: plummer, particles: 10, seed: 9}"))
    assert own.position[10:].tobytes() == alone.position.tobytes()


def test_the_number_of_particles_is_shared_in_proportion():
    bodies = make_particles(scenario(TWO).override(particles=400))
    assert np.bincount(bodies.species).tolist() == [300, 100]
    for total in range(3, 60):
        parts = apportioned([5, 1, 9], total)
        assert sum(parts) == total and min(parts) >= 1
    assert "must be at least 2" in said(TWO + "  particles: 1\n")


def test_a_rotation_is_that_of_an_orbits_elements():
    matrix = rotation(Rotation(inclination=90, node=90, argument=0))
    np.testing.assert_allclose(matrix @ [1, 0, 0], [0, 1, 0], atol=1e-15)  # the ascending node
    np.testing.assert_allclose(matrix @ [0, 0, 1], [1, 0, 0], atol=1e-15)  # the orbit's normal
    turned = make_particles(scenario(TWO.replace("species: guest", "species: guest, rotate: {inclination: 35, node: 80}")))
    plain = make_particles(scenario(TWO))
    there = rotation(Rotation(inclination=35, node=80))
    np.testing.assert_allclose(turned.position[30:] - [10, 0, 0], (plain.position[30:] - [10, 0, 0]) @ there.T, atol=1e-13)
    np.testing.assert_allclose(there @ there.T, np.eye(3), atol=1e-15)


def test_files_and_generators_mix(tmp_path):
    (tmp_path / "star.csv").write_text("m,x,y,z,vx,vy,vz,species\n1,0,0,0,0,0,0,sun\n2,1,0,0,0,0,0,hole\n")
    text = "initial: {combine: [{file: star.csv%s}, {generator: plummer, particles: 5}]}"
    bodies = make_particles(scenario(text % "", tmp_path))
    assert bodies.species_names == ("sun", "hole", "plummer") and bodies.count == 7
    named = make_particles(scenario(text % ", species: west", tmp_path))
    assert named.species_names == ("west sun", "west hole", "plummer")
    assert number_of_bodies(scenario(text % "", tmp_path)) is None


def test_parts_without_names_are_counted_apart():
    text = "initial: {combine: [{generator: plummer, particles: 5}, {generator: plummer, particles: 6}]}"
    assert make_particles(scenario(text)).species_names == ("plummer", "plummer 2")


def test_the_resolved_scenario_makes_the_same_bodies():
    made = scenario(TWO)
    values = made.resolved() | {"initial": resolved_initial(made)}
    assert values["initial"]["combine"][0]["cut"] == 22.8
    again = make_particles(Scenario.from_dict(values))
    assert again.position.tobytes() == make_particles(made).position.tobytes()
    assert make_particles(scenario(made.to_yaml().split("gravity:")[0])).position.tobytes() == again.position.tobytes()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("- {generator: plummer, particles: 30}", "- {generator: plummer, particles: 30, species: guest}",
         "run.yaml:4: initial.combine.1.species: two species with one name, 'guest'; give each part its own name"),
        ("generator: plummer, particles: 10", "generator: plumer, particles: 10",
         "run.yaml:4: initial.combine.1.generator: unknown generator 'plumer' (did you mean 'plummer'?)"),
        ("[10, 0, 0]", "[10, 0]", "run.yaml:4: initial.combine.1.offset: must have 3 numbers in a run in 3 dimensions"),
        ("[10, 0, 0]", "10", "run.yaml:4: initial.combine.1.offset: must be a list of 2 or 3 numbers, got 10"),
        ("offset", "ofset", "run.yaml:4: initial.combine.1.ofset: unknown key (did you mean 'offset'?)"),
        ("particles: 30", "particles: -3", "run.yaml:3: initial.combine.0.particles: must be at least 1, got -3"),
        ("{generator: plummer, particles: 30}", "{generator: plummer}", "initial.combine.0.particles: is missing; add"),
        ("{generator: plummer, particles: 30}", "5", "initial.combine.0: needs 'generator: NAME' with 'particles: N'"),
        ("species: guest", "rotate: {inclinaton: 3}", "rotate.inclinaton: unknown key (did you mean 'inclination'?)"),
        ("combine:", "combin:", "run.yaml:2: initial.combin: unknown key (did you mean 'combine'?)"),
    ],
)  # fmt: skip
def test_mistakes_in_a_part_are_refused(old, new, says):
    assert says in said(TWO.replace(old, new))


def test_invalid_lists_of_parts_are_refused():
    assert "initial.combine: must be a list of parts" in said("initial: {combine: 3}")
    assert "at least 1 item" in said("initial: {combine: []}")
    flat = "initial: {combine: [{generator: lecture, particles: 3, rotate: {inclination: 9}}]}"
    with pytest.raises(InputError, match="a run in 2 dimensions has no inclinations"):
        make_particles(Scenario.from_text(flat + REST.replace("3", "2"), "run.yaml"))
