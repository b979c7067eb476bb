"""Whatever a scenario, an option or ``--set`` holds, the answer is a result or one line; never a traceback or a hang.

Each random test has a short form and a campaign, ``pytest -m campaign tests/test_fuzz_scenario.py``.
"""

import contextlib
import copy
import io
import os
import signal
import threading
import typing
from pathlib import Path

import pytest
import typer
from conftest import sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import nbody.initial.exponential_disk  # noqa: F401 (its import of SciPy is not part of an answer's time)
from nbody.cli import main, program
from nbody.errors import DeviceError, InputError
from nbody.fields import FIELDS
from nbody.initial import GENERATORS, check_initial
from nbody.initial.generator import FixedGenerator
from nbody.integrators import INTEGRATORS
from nbody.run.guards import doubts
from nbody.run.plan import plan
from nbody.run.sweep import Sweep
from nbody.scenario import Scenario
from nbody.scenario.groups import GravityKeys
from nbody.scenario.yaml_reader import dump

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # NumPy's, which would be more than one line
DISK = (Path(__file__).resolve().parents[1] / "scenarios" / "disk.yaml").read_text()
SCRAPS = [
    "!!python/object:os.system", "&a", "*a", "<<: *a", "---", "...", "1e-3", "1E5", ".nan", ".inf", "-0", "1:30", "010",
    "no", "null", "~", "[]", "{}", "{", "]", "\t", "\x00", "\ufeff", "2001-01-01", "9" * 400, "steps: 5", "|", ">", "?",
    "'", '"', "#", ": ", "- ", "G", "plummer", "cutoff", "file: /etc/passwd", "frame: -1",
]  # fmt: skip


CAMPAIGN = 1000
"""The least number of examples of a campaign."""


def budget(short: int, long: int) -> pytest.MarkDecorator:
    """The number of examples: ``short``, or in a campaign ``long``."""
    return pytest.mark.parametrize("examples", sample([short, long], 1))


def examined(check, strategy, examples: int, deadline: int | None = 5000) -> None:
    """Call ``check`` with examples of a strategy: the same ones each time. In a campaign they are random, and each must
    end within ``deadline`` milliseconds."""
    long = examples >= CAMPAIGN
    limits = settings(
        max_examples=examples, deadline=deadline if long else None, derandomize=not long,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    limits(given(strategy)(check))()


def is_one_line(error: Exception) -> bool:
    return 0 < len(str(error)) < 2000


# --- Texts -----------------------------------------------------------------------------------------------------------


def answer(text: str) -> None:
    """Load it and check its bodies' description, as ``nbody run`` would first."""
    try:
        check_initial(Scenario.from_text(text, "fuzz.yaml"))
    except InputError as error:
        assert is_one_line(error)


@budget(150, 10_000)
def test_any_text_is_a_scenario_or_refused(examples):
    examined(answer, st.text(max_size=400), examples)


@budget(200, 10_000)
def test_a_mangled_preset_is_a_scenario_or_refused(examples):
    def mangled(cuts) -> None:
        text = DISK
        for at, length, scrap in cuts:
            text = text[:at] + scrap + text[at + length :]
        answer(text)

    cut = st.tuples(st.integers(0, len(DISK)), st.integers(0, 40), st.sampled_from(SCRAPS))
    examined(mangled, st.lists(cut, max_size=4), examples)


@pytest.mark.parametrize("depth", [10, 1000, 20000])
def test_depth_is_bounded(depth):
    answer("a: " + "[" * depth + "]" * depth)


# --- Values ----------------------------------------------------------------------------------------------------------

NUMBERS = [
    0, -0.0, 1, 2, 3, 7, -1, 0.3, 0.5, 0.999999, 1 - 1e-16, 1.5, 10, 40, 1e-3, 1e-9, 1e9, 1e16, 2**53, 2**63 - 1, 2**63,
    10**30, 1e37, 1e38, 3.5e38, 1e-38, 1e-46, 1e154, 1e155, 1e-154, 1e-162, 1e200, 1e-200, 1e300, 1e-300, 1e308, -1e308,
    1.8e308, 2e-308, 5e-324, float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
WORDS = [
    "", " ", "a", "no", "all", "thermal", "kroupa", "salpeter", "plummer", "cutoff", "spline", "none", "mixed", "float32",
    "float64", "cpu", "cpu-tree", "reference", "matrix:numpy", "merge", "stop", "ecliptic", "spherical", "5 pc", "1e-300 pc",
    "1e300 km/s", "-3 yr", "5 5", "1..3", "9..1", "exp(-r)", "1/r", "r**-1e300", "(1+r**2)**-2.5", "\x7f", "ä" * 50,
]  # fmt: skip
ODD_NUMBERS = st.one_of(
    st.sampled_from(NUMBERS),
    st.floats(),
    st.floats(0.0, allow_infinity=False),
    st.integers(-(10**20), 10**20).filter(lambda count: not 1000 < count < 10**13),  # which would take minutes
)
ODD = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from([None, True, False]),
    st.lists(st.sampled_from(NUMBERS), max_size=4),
    st.dictionaries(st.sampled_from(["uniform", "linear", "stars", "density", "a", "m"]), st.sampled_from(NUMBERS)),
)
VARIED = [{"initial.seed": "1..3"}, {"initial.seed": "1..2", "initial.mass": {"uniform": [1, 2]}}]
ORBITS = [{"initial.bodies.1.a": {"linear": [1, 2, 3]}}, {"initial.bodies.1.e": [0.1, 0.2]}]
NAMES = ("scheme", "name", "softening", "field", "dimensions", "rule", "action", "observables", "vary", "function")

NEEDS: dict[str, dict] = {
    "sphere": {"profile": "hernquist"},
    "planets": {"bodies": [{"m": 1.0}, {"m": 1e-3, "a": 1.0, "e": 0.1}, {"m": 1e-3, "a": 2.0, "name": "b"}]},
}


def models_in(kind: object) -> list[type[BaseModel]]:
    """The groups that an annotation allows."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for each in typing.get_args(kind) for model in models_in(each)]


def paths_of(model: type[BaseModel], at: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The paths of all keys of a group and of the groups in it."""
    found = []
    for name, field in model.model_fields.items():
        found.append((*at, name))
        for inner in models_in(field.annotation):
            found += paths_of(inner, (*at, name)) if inner is not model else []
    return found


def put(values: dict, path: tuple[str, ...], value: object) -> None:
    """Set a value, with groups around it where there are none; the last item of a list stands for its name."""
    for key in path[:-1]:
        if isinstance(below := values.get(key), list) and below and isinstance(below[-1], dict):
            values = below[-1]
        else:
            if not isinstance(below, dict):
                values[key] = {}
            values = values[key]
    values[path[-1]] = value


@st.composite
def scenarios(draw) -> dict:
    """A scenario that works, or nearly, in which up to four values are replaced by odd ones."""
    generator, scheme = draw(st.sampled_from(list(GENERATORS))), draw(st.sampled_from(list(INTEGRATORS)))
    kind, steps = GENERATORS.load(generator), INTEGRATORS.load(scheme)
    initial: dict = {"generator": generator, **NEEDS.get(generator, {})}
    if not issubclass(kind, FixedGenerator):
        initial["particles"] = draw(st.sampled_from([1, 2, 3, 9, 33]))
    values: dict = {
        "initial": initial,
        "integrator": {"scheme": scheme, "dt": 0.01, **draw(st.sampled_from([{"steps": 2}, {"end": 0.02}]))},
        "gravity": draw(st.sampled_from([{}, {"softening": "plummer", "length": 0.1}, {"dimensions": 2}])),
        "engine": "cpu",
        "precision": draw(st.sampled_from(["float64", "float64", "float32"])),
    }
    paths = [
        *paths_of(kind, ("initial",)), *paths_of(getattr(steps, "Options", steps), ("integrator",)),
        *paths_of(GravityKeys, ("gravity",)), *(("integrator", key) for key in ("dt", "steps", "end")),
        *(path for path in paths_of(Scenario, ()) if path[0] not in ("initial", "units", "ensemble") and len(path) > 1),
    ]  # fmt: skip
    if draw(st.booleans()):
        field = draw(st.sampled_from(list(FIELDS)))
        model = FIELDS.load(field)
        needed = {name: 1.0 for name, each in model.model_fields.items() if each.is_required()}
        values["fields"] = [{"field": field, **needed}]
        paths += paths_of(model, ("fields",))
    if draw(st.integers(0, 3)) == 0:
        values["units"] = {"length": "pc", "mass": "Msun", "velocity": "km/s"}
    if draw(st.integers(0, 3)) == 0:
        values["ensemble"] = {"vary": draw(st.sampled_from(ORBITS if generator == "planets" else VARIED))}
    for path in draw(st.lists(st.sampled_from(sorted(set(paths))), max_size=3)):
        if path[-1] not in NAMES or draw(st.integers(0, 9)) == 0:
            put(values, path, copy.deepcopy(draw(ODD_NUMBERS if draw(st.integers(0, 9)) else ODD)))
    if draw(st.integers(0, 3)) == 0 and isinstance(values["initial"], dict):
        values["initial"] = {"combine": [dict(values["initial"], offset=[1, 0, 0]), values["initial"]], "seed": 3}
    return values


@budget(100, 20_000)
def test_any_scenario_has_bodies_and_a_plan_or_is_refused(examples):
    def planned(values: dict) -> None:
        try:
            scenario = Scenario.from_text(dump(values), "fuzz.yaml")
            found = plan(scenario, measure=False)
            _, bodies = found.build()
            doubts(found.scenario, found.engine_kind, found.integrator, bodies)
            found.header()
        except (InputError, DeviceError) as error:
            assert is_one_line(error)

    examined(planned, scenarios(), examples, deadline=20_000)


# --- The command line ------------------------------------------------------------------------------------------------


def said(*words: object) -> tuple[int, str]:
    """The exit code and the lines of standard error of a command."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
    lines = told.getvalue()
    assert code in (0, 1, 2, 130), lines
    if code == 2 and "Usage" not in lines:
        assert lines.strip().splitlines()[-1].startswith("error: "), lines
    assert code != 2 or sum(line.startswith("error: ") for line in lines.splitlines()) <= 1, lines
    return code, lines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a scenario and its recording."""
    monkeypatch.chdir(tmp_path)
    scenario = {
        "initial": {"generator": "plummer", "particles": 9},
        "gravity": {"softening": "plummer", "length": 0.1},
        "integrator": {"dt": 0.01, "steps": 3},
        "engine": "cpu",
        "precision": "float64",
    }
    Path("small.yaml").write_text(dump(scenario))
    assert said("run", "small.yaml", "-o", "small.h5", "--quiet")[0] == 0
    monkeypatch.setattr(Sweep, "run", lambda sweep, notify: True)  # its runs are those of 'run'
    return tmp_path


COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("small.yaml", "--quiet"), "info": ("small.h5",), "export": ("small.h5", "a.csv"), "rerun": ("small.h5",),
    "resume": ("small.h5", "--quiet"), "plot": ("small.h5",), "diff": ("small.h5", "small.h5"), "new": ("disk",),
    "sweep": ("small.yaml", "--vary", "initial.seed=1,2"), "list": (), "scenarios": (),
    "view": ("small.h5", "--screenshot", "a.png", "--size", "64x48"),
    "movie": ("small.h5", "a.gif", "--size", "64x48", "--quiet"),
}  # fmt: skip
"""The commands and the words with which they work. (``doctor``, ``verify`` and ``bench`` take long whatever one asks.)"""

DRAWN = ("view", "movie", "plot")
"""Commands that take a second, for campaigns."""

NOT_TRIED = ("--help", "--view", "--follow", "--cluster", "--gpu", "--install-completion", "--show-completion")


def options_of(command: str) -> list[tuple[str, bool]]:
    """The options of a command, and whether each takes a value."""
    found = typer.main.get_command(program(command)).commands[command].params  # type: ignore[attr-defined]
    names = [(name, not getattr(each, "is_flag", False)) for each in found for name in (*each.opts, *each.secondary_opts)]
    return [(name, takes) for name, takes in names if name.startswith("-") and name not in NOT_TRIED]


TYPED = st.one_of(
    st.sampled_from([*map(str, NUMBERS), *WORDS]),
    st.sampled_from(["9" * 5000, "9" * 20, "²", "a" * 300 + ".png", ".", "/dev/null"]),
    st.sampled_from(["small.yaml", "small.h5", "no/such/a.png", "1x1"]),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20),
)


@st.composite
def command_lines(draw, commands: list[str]) -> list[str]:
    """A command with up to three options, which have odd values."""
    command = draw(st.sampled_from(commands))
    words = [command, *COMMANDS[command]]
    options = options_of(command)
    for name, takes in draw(st.lists(st.sampled_from(options), max_size=3, unique=True)) if options else ():
        value = draw(TYPED if name != "--set" else settings_typed())
        words += [name, value] if takes else [name]
    return words


@st.composite
def settings_typed(draw) -> str:
    """``KEY=VALUE`` for ``--set``."""
    path = ".".join(draw(st.sampled_from(sorted(set(SETTABLE)))))
    return f"{path}={draw(st.one_of(TYPED, (ODD_NUMBERS | ODD).map(lambda value: dump({'a': value})[3:].strip())))}"


SETTABLE = [
    *paths_of(Scenario, ()), *paths_of(GENERATORS.load("plummer"), ("initial",)), *paths_of(GravityKeys, ("gravity",)),
    ("initial", "seed"), ("initial", "particles"), ("integrator", "dt"), ("integrator", "scheme"), ("record", "every"),
]  # fmt: skip


@budget(30, 2000)
def test_any_option_of_a_command_is_obeyed_or_refused(folder, examples):
    commands = [name for name in COMMANDS if examples > 1000 or name not in DRAWN]
    before = {name: Path(name).read_bytes() for name in ("small.yaml", "small.h5")}

    def typed(words: list[str]) -> None:
        said(*words)
        for name, content in before.items():
            Path(name).write_bytes(content)

    examined(typed, command_lines(commands), examples, deadline=None)


LONGEST_RUN = 10.0
"""Seconds until a run gets Ctrl-C: some scenarios ask for 10⁹ steps."""


@contextlib.contextmanager
def interrupted_after(seconds: float):
    """Ctrl-C for what takes longer than so many seconds."""
    clock = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    clock.start()
    try:
        yield
    finally:
        clock.cancel()


@pytest.mark.campaign
def test_any_scenario_runs_or_ends_in_a_clear_error(folder):
    def run(values: dict) -> None:
        Path("fuzz.yaml").write_text(dump(values))
        with interrupted_after(LONGEST_RUN):
            said("run", "fuzz.yaml", "--quiet", "--overwrite", "-o", "fuzz.h5")
        with contextlib.suppress(FileNotFoundError):
            os.remove("fuzz.h5")

    examined(run, scenarios(), 3000, deadline=None)
