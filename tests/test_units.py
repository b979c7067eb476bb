"""Units: quantities are converted, G follows, the file and its reader name them, and what is wrong is told in one line."""

import builtins
import math

import pytest

from nbody.cli.numbers import quantity
from nbody.errors import InputError
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario, Units
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


def test_options_of_the_command_line_take_units():
    changed = scenario().override(["gravity.length=2e-3 kpc"], dt=quantity("1 Myr"), end=quantity("20 Myr"))
    assert changed.gravity.length == pytest.approx(2.0, rel=1e-15)
    assert changed.integrator.end == pytest.approx(20 * changed.integrator.dt, rel=1e-15)
    with pytest.raises(InputError, match=r"^--dt: '1 kg' is not a time; write one"):
        scenario().override(dt=quantity("1 kg"))


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


PC_KMS = "{length: pc, mass: Msun, velocity: km/s}"
WRONG = [
    ("1000 au", "5 parsec/kg", "bad.yaml:4: gravity.length: '5 parsec/kg' is not a length; write one as in '5 pc'"),
    (
        "1000 au",
        "5 parsek",
        "bad.yaml:4: gravity.length: unknown unit 'parsek' (did you mean 'parsec'?); write a length",
    ),
    ("1000 au", "5 m**9999999", "bad.yaml:4: gravity.length: unknown unit 'm**9999999'"),
    ("1000 au", "5 mag", "bad.yaml:4: gravity.length: '5 mag' is not a length"),
    ("1000 au", "-5 pc", "bad.yaml:4: gravity.length: must be at least 0, got -5"),
    ("0.01 Myr, end", "1 pc, end", "bad.yaml:5: integrator.dt: '1 pc' is not a time"),
    (
        "particles: 8",
        "particles: 8 pc",
        "bad.yaml:3: initial.particles: must be a number, got '8 pc'; this key takes a",
    ),
    (
        f"units: {PC_KMS}\n",
        "",
        "bad.yaml:3: gravity.length: '1000 au' has a unit, and the scenario has no units; add 'un",
    ),
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
def test_wrong_units_are_told_in_one_line(old, new, line):
    with pytest.raises(InputError) as caught:
        scenario(TEXT, (old, new))
    assert str(caught.value).startswith(line) and str(caught.value).isprintable()


def test_without_astropy_the_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "astropy.constants", None)
    with pytest.raises(InputError, match=r"pip install 'nbody\[units\]'"):
        scenario()
    without = TEXT.replace(f"units: {PC_KMS}\n", "").replace(" Myr", "").replace(" au", "")
    assert scenario(without).gravity.G == 1
