"""Units: quantities are converted, G follows, the file and its reader name them, and what is wrong is told in one line."""

import builtins
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import said

import nbody
from nbody import opengl
from nbody.cli import main
from nbody.cli.options import quantity
from nbody.cli.progress import facts, position
from nbody.cli.summary import summary_text
from nbody.errors import InputError
from nbody.initial import GENERATORS, check_initial, make_particles, resolved_initial
from nbody.install import install_extra
from nbody.number_format import duration, rate, size
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario, Units
from nbody.scenario.quantities import SHOWN_TIMES, shown_time
from nbody.trajectory import Trajectory

TEXT = """\
name: cluster
units: {length: pc, mass: Msun, velocity: km/s}
initial: {generator: plummer, particles: 8}
gravity: {softening: plummer, length: 1000 au}
integrator: {dt: 0.01 Myr, end: 0.02 Myr}
record: {dt: 0.01 Myr}
"""

AU, SECONDS_PER_YEAR, GM_SUN = 149_597_870_700.0, 365.25 * 86400, 1.3271244e20
PC = 648_000 / math.pi * AU
"""IAU 2012 B2, 2015 B2 and 2015 B3."""


def scenario(text: str = TEXT, *changes: tuple[str, str]) -> Scenario:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Scenario.from_text(text, "bad.yaml")


def test_quantities_become_numbers_in_the_scenarios_units():
    read = scenario()
    assert read.gravity.length == pytest.approx(1000 * AU / PC, rel=1e-15)
    time = PC / 1000  # the unit of time, pc/(km/s), in seconds
    assert read.integrator.dt == pytest.approx(0.01e6 * SECONDS_PER_YEAR / time, rel=1e-14)
    assert read.record.dt == read.integrator.dt
    assert scenario(TEXT, ("1000 au", "0.01 pc")).gravity.length == 0.01  # to the bit
    assert scenario(TEXT, ("1000 au", "0.01")).gravity.length == 0.01


@pytest.mark.parametrize(
    ("units", "G"),
    [
        ("{length: au, mass: Msun, time: d}", GM_SUN * 86400**2 / AU**3),  # Gauss's constant squared, 2.959122e-4
        ("{length: pc, mass: Msun, velocity: km/s}", GM_SUN / PC / 1e6),
        ("{length: kpc, mass: 1e10 Msun, velocity: km/s}", 1e10 * GM_SUN / (1000 * PC) / 1e6),  # GADGET's
        ("{mass: Msun, time: yr, velocity: au/yr}", GM_SUN * SECONDS_PER_YEAR**2 / AU**3),
    ],
)
def test_g_follows_from_the_units(units, G):
    """To the accuracy of the nominal GM☉, which Astropy divides by G and this multiplies again."""
    text = TEXT.replace("{length: pc, mass: Msun, velocity: km/s}", units)
    found = scenario(text).gravity.G
    assert found == pytest.approx(G, rel=1e-12)
    without = "\n".join(line for line in text.splitlines() if "gravity" not in line)
    assert found == scenario(without).gravity.G


def test_the_resolved_scenario_is_read_back_the_same():
    read = scenario()
    again = Scenario.from_text(read.to_yaml(), "again.yaml")
    assert again.gravity == read.gravity and again.integrator == read.integrator and again.units == read.units
    written = scenario(TEXT, ("{softening", "{G: 4.301e-3, softening"))
    assert written.gravity.G == 4.301e-3  # a written G that fits the units is used to its last digit


def test_numbers_are_rounded_to_three_digits_before_they_get_a_prefix():
    assert [rate(999999), rate(-5e9), duration(0.9996), size(999999), size(999)] == [
        "1.00 M", "-5.00 G", "1.00 s", "1.00 MB", "999 bytes",
    ]  # fmt: skip


def test_options_of_the_command_line_take_units():
    assert scenario().override(softening="plummer:2e-3 kpc").gravity.length == pytest.approx(2.0, rel=1e-15)
    changed = scenario().override(["gravity.length=2e-3 kpc"], dt=quantity("1 Myr"), end=quantity("20 Myr"))
    assert changed.gravity.length == pytest.approx(2.0, rel=1e-15)
    assert changed.integrator.end == pytest.approx(20 * changed.integrator.dt, rel=1e-15)
    with pytest.raises(InputError, match=r"^--dt: '1 kg' is not a time; write one"):
        scenario().override(dt=quantity("1 kg"))
    with pytest.raises(InputError, match=r"^--dt: '1 myr': 'myr' is a thousandth of a year; write Myr"):
        scenario().override(dt=quantity("1 myr"))


def test_quantities_of_astropy_and_amuse_are_quantities_and_never_lose_their_unit():
    from astropy import units as u

    units = {"length": u.pc, "mass": u.Msun, "velocity": u.km / u.s}
    made = nbody.plummer(8, mass=300 * u.Msun, units=units)
    assert made == nbody.plummer(8, mass=SimpleNamespace(number=300, unit="MSun"), units=units) and made.mass.sum() == 300
    simulation = nbody.Simulation(made, dt=0.01 * u.Myr, units=units, engine="reference", precision="float64")
    assert simulation.scenario.integrator.dt == scenario().override(dt="0.01 Myr").integrator.dt
    assert simulation.integrate(until=0.01 * u.Myr).steps == 1
    simulation.add(m=1 * u.Msun, a=1 * u.pc)
    for call in (
        lambda: nbody.Particles([1] * u.Msun, [[0, 0]], [[0, 0]]),
        lambda: simulation.change(0, mass=1 * u.kg),
    ):
        with pytest.raises(InputError, match=r"has the unit 'solMass'; give plain|got <Quantity 1. kg>"):
            call()
    with pytest.raises(InputError, match=r"^plummer: mass: '300.0 solMass' has a unit, and the scenario has no units"):
        nbody.plummer(8, mass=300 * u.Msun)


def test_the_file_says_its_units_and_needs_no_library_to_be_read(tmp_path, monkeypatch):
    text = TEXT.replace("0.02 Myr", "0.01 Myr") + "engine: reference\nprecision: float64\n"
    Simulation(scenario(text), tmp_path / "run.h5").run()
    imported = builtins.__import__

    def without_astropy(name, *rest):
        assert not name.startswith("astropy")
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_astropy)
    with Trajectory(tmp_path / "run.h5") as run:
        assert run.units == Units("pc", "Msun", "pc s/km", "km/s")
        assert run.units.symbol("length") == "pc" and run.units.symbol("energy") == "Msun (km/s)^2"
    assert Units().symbol("length") == Units().symbol("energy") == ""


# --- quantities in initial conditions --------------------------------------------------------------------------------

SCALED = {"length": "pc", "mass": "Msun", "velocity": "km/s"}


def bodies(initial: str, units: str = "{length: pc, mass: Msun, velocity: km/s}"):
    return make_particles(Scenario.from_text(f"units: {units}\ninitial: {initial}\nintegrator: {{dt: 1, steps: 1}}\n"))


def half_mass(particles):
    distance = np.linalg.norm(particles.position, axis=1)
    order = np.argsort(distance)
    return distance[order][np.searchsorted(np.cumsum(particles.mass[order]), particles.mass.sum() / 2)]


@pytest.mark.parametrize(("name", "slope"), [("plummer", 0.65), ("king", 0.6), ("hernquist", 0.29)])
def test_a_cluster_has_the_mass_and_the_half_mass_radius_that_two_lines_say(name, slope):
    """A quantile of N radii scatters by 1/(2√N dM/d ln r), where ``slope`` is dM/d ln r at the half-mass radius."""
    made = bodies(f"{{generator: {name}, particles: 5000, mass: 3000 Msun, half_mass_radius: 3 pc}}")
    assert made.mass.sum() == pytest.approx(3000)
    assert half_mass(made) == pytest.approx(3, rel=4 / (2 * math.sqrt(5000) * slope))
    kinetic = 0.5 * float((made.mass[:, None] * made.velocity**2).sum())
    other = getattr(nbody, name)(5000, units=SCALED, mass="3e3 Msun", half_mass_radius="0.003 kpc")
    np.testing.assert_allclose(other.velocity, made.velocity, rtol=1e-12)
    henon = getattr(nbody, name)(5000, virial_radius=2.0)  # T = -W/2 = M²/(4 r_v)
    assert 0.5 * float((henon.mass[:, None] * henon.velocity**2).sum()) == pytest.approx(1 / 8, rel=1e-9)
    assert kinetic > 0


def test_a_cluster_has_one_size():
    with pytest.raises(InputError, match="half_mass_radius: cannot be combined with 'radius'; remove one"):
        bodies("{generator: plummer, particles: 9, radius: 1 pc, half_mass_radius: 1 pc}")


def test_planets_take_the_units_of_astronomers():
    made = bodies("{generator: planets, bodies: [{m: 1 Msun}, {m: 1 Mearth, a: 1 au, e: 0.0167}]}")
    distance, speed = (np.linalg.norm(each[1] - each[0]) for each in (made.position, made.velocity))
    assert distance == pytest.approx((1 - 0.0167) * AU / PC, rel=1e-12)
    assert speed == pytest.approx(30.29, abs=0.01)  # km/s at the perihelion (NASA's fact sheet of the Earth)
    assert made.mass[0] / made.mass[1] == pytest.approx(332946, rel=1e-4)


def test_parts_are_placed_at_quantities():
    text = "{combine: [{generator: figure_eight, offset: [8 kpc, 0, -1], velocity: [0, 220 km/s, 1 pc/Myr]}]}"
    made = bodies(text)
    np.testing.assert_allclose(made.position.mean(axis=0), [8000, 0, -1], atol=1e-9)
    np.testing.assert_allclose(made.velocity.mean(axis=0), [0, 220, 0.9777922], atol=1e-6)


def test_the_solar_system_is_the_same_in_all_units():
    au, pc = (bodies("{generator: solar_system}", units) for units in ("{length: au, mass: Msun, time: d}", PC_KMS))
    np.testing.assert_allclose(pc.position * PC / AU, au.position, atol=1e-12)
    np.testing.assert_allclose(pc.velocity * 1000 * 86400 / AU, au.velocity, atol=1e-14)
    np.testing.assert_allclose(au.position, nbody.solar_system(G=2.9591220828559e-4).position, atol=1e-14)


def test_stars_are_in_solar_masses_and_periods_in_time():
    asked = (
        "{generator: plummer, particles: 50, masses: {function: kroupa, low: 0.5 Msun, high: 2e31 kg}, "
        "binaries: {fraction: 0.5, period: [1 yr, 2 yr]}}"
    )
    scenario = Scenario.from_text(f"units: {PC_KMS}\ninitial: {asked}\nintegrator: {{dt: 1, steps: 1}}\n")
    found = resolved_initial(scenario)
    assert found["masses"]["low"] == pytest.approx(0.5) and found["masses"]["high"] == pytest.approx(10.06, abs=0.01)
    assert found["binaries"]["period"][1] == pytest.approx(2 * SECONDS_PER_YEAR * 1000 / PC)


DIMENSIONAL = {
    "mass", "radius", "half_mass_radius", "virial_radius", "dispersion", "semi_major_axis", "side", "sigma", "inner",
    "outer", "centre", "pericentre", "separation",
}  # fmt: skip
"""Options that have a dimension wherever they occur."""


@pytest.mark.parametrize("name", GENERATORS)
def test_every_option_with_a_dimension_reads_quantities(name):
    """One of another dimension is refused as such."""
    required = {"planets": "bodies: [{m: 1}], ", "sphere": "profile: plummer, "}.get(name, "")
    for option in DIMENSIONAL & GENERATORS.load(name).model_fields.keys():
        initial = f"{{generator: {name}, particles: 4, {required}{option}: 1 K}}"
        with pytest.raises(InputError, match=f"{option}: '1 K' is not a (length|mass|velocity); write one"):
            check_initial(Scenario.from_text(f"units: {PC_KMS}\ninitial: {initial}\nintegrator: {{dt: 1, steps: 1}}\n"))


# --- units shown -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", SHOWN_TIMES)
def test_times_are_shown_in_years(unit):
    from astropy.units import Unit

    factor, shown = shown_time(unit)
    assert factor == pytest.approx((1 * Unit(unit)).to_value(shown), rel=1e-12)
    assert shown_time("d") == (1.0, "d") and shown_time("") == (1.0, "")


def test_plots_info_and_summary_show_the_units(tmp_path, capsys):
    text = TEXT + "engine: reference\nprecision: float64\n"
    text = text.replace("record: {dt: 0.01 Myr}", "record: {dt: 0.01 Myr, observables: [half_mass_radius, escapers]}")
    seen = []
    summary = Simulation(scenario(text), tmp_path / "run.h5").run(progress=seen.append)
    assert summary.time_unit == "pc s/km"
    assert "t = 0.02 Myr in " in summary_text(summary)
    assert re.search(r"  r½ [0-9.]+ pc  escapers [0-9]+$", facts(seen[-1]))
    assert position(replace(seen[-1], steps=None)) == "step 2, t = 0.02 Myr"
    with Trajectory(tmp_path / "run.h5") as run:
        figure = nbody.plot(run, "energies", "virial")
        assert figure.axes[0].get_xlabel() == "time [Myr]" and figure.axes[0].get_ylabel() == "energy [Msun (km/s)²]"
        assert figure.axes[0].lines[0].get_xdata()[-1] == pytest.approx(0.02)
        assert "t = 0 to 0.02 Myr" in repr(run) and run.time[-1] == pytest.approx(0.02 * 1.0227, rel=1e-3)
    if opengl.screenless().renderer:
        shot = ["view", str(tmp_path / "run.h5"), "--screenshot", str(tmp_path / "end.png"), "--size", "64x48"]
        assert main(shot) == 0 and capsys.readouterr().out.endswith("frame 2 of 0 to 2, t = 0.02 Myr\n")
    assert main(["info", str(tmp_path / "run.h5")]) == 0
    page = capsys.readouterr().out.splitlines()
    of = {line.split("  ")[0]: line for line in page}
    assert "0 to 0.02 Myr (steps 0 to 2)" in of["time"] and of["energy"].endswith("Msun (km/s)^2")
    assert of["half mass radius"].endswith(" pc") and of["escapers"][-1].isdigit()


PC_KMS = "{length: pc, mass: Msun, velocity: km/s}"
WRONG = [
    ("1000 au", "5 parsec/kg", "bad.yaml:4: gravity.length: '5 parsec/kg' is not a length; write one as in '5 pc'"),
    ("1000 au", "5 parsek", "bad.yaml:4: gravity.length: unknown unit 'parsek' (did you mean 'parsec'?)"),
    ("1000 au", "5 m**9999999", "bad.yaml:4: gravity.length: unknown unit 'm**9999999'"),
    ("1000 au", "5 mag", "bad.yaml:4: gravity.length: '5 mag' is not a length"),
    ("1000 au", "-5 pc", "bad.yaml:4: gravity.length: must be at least 0, got -5"),
    ("0.01 Myr, end", "1 pc, end", "bad.yaml:5: integrator.dt: '1 pc' is not a time"),
    ("particles: 8", "particles: 8 pc", "bad.yaml:3: initial.particles: must be a number, got '8 pc'; this"),
    (f"units: {PC_KMS}\n", "", "bad.yaml:3: gravity.length: '1000 au' has a unit, and the scenario has no units"),
    ("{softening", "{G: 1, softening", "bad.yaml:4: gravity.G: 1 contradicts the units, in which G is 0.00430"),
    ("pc, mass", "kg, mass", "bad.yaml:2: units.length: 'kg' is not a length; write one as in 'pc'"),
    ("pc, mass", "parsek, mass", "bad.yaml:2: units.length: unknown unit 'parsek' (did you mean 'parsec'?)"),
    ("pc, mass", "0 pc, mass", "bad.yaml:2: units.length: must be greater than 0"),
    (", velocity: km/s", "", "bad.yaml:2: units: needs 'mass' and two of"),
    ("mass: Msun", "time: Myr", "bad.yaml:2: units: needs 'mass' and two of"),
    ("mass: Msun", "mass: Msun, time: Myr", "bad.yaml:2: units.velocity: contradicts the units of length and time"),
    ("mass: Msun", "mas: Msun", "bad.yaml:2: units.mas: unknown key (did you mean 'mass'?)"),
    (PC_KMS, "pc", "bad.yaml:2: units: must be a group of keys (length, mass, time, velocity), got 'pc'"),
]


@pytest.mark.parametrize(("old", "new", "line"), WRONG, ids=[new or "no units" for _, new, _ in WRONG])
def test_invalid_units_are_refused(old, new, line):
    assert said(scenario, TEXT, (old, new)).startswith(line)


def test_without_astropy_the_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "astropy.constants", None)
    with pytest.raises(InputError, match=re.escape(install_extra("units"))):
        scenario()
    without = TEXT.replace(f"units: {PC_KMS}\n", "").replace(" Myr", "").replace(" au", "")
    assert scenario(without).gravity.G == 1
