"""Whatever text a scenario file holds, the answer is a scenario or one line; never a traceback, a hang or a file read."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nbody.initial.exponential_disk  # noqa: F401 (its import of SciPy is not part of an answer's time)
from nbody.errors import InputError
from nbody.initial import check_initial
from nbody.scenario import Scenario

DISK = (Path(__file__).resolve().parents[1] / "scenarios" / "disk.yaml").read_text()
SCRAPS = [
    "!!python/object:os.system", "&a", "*a", "<<: *a", "---", "...", "1e-3", "1E5", ".nan", ".inf", "-0", "1:30", "010",
    "no", "null", "~", "[]", "{}", "{", "]", "\t", "\x00", "\ufeff", "2001-01-01", "9" * 400, "steps: 5", "|", ">", "?",
    "'", '"', "#", ": ", "- ", "G", "plummer", "cutoff", "file: /etc/passwd", "frame: -1",
]  # fmt: skip


def answer(text: str) -> None:
    """Load it and check its bodies' description, as ``nbody run`` would first."""
    try:
        check_initial(Scenario.from_text(text, "fuzz.yaml"))
    except InputError as error:
        assert "\n" not in str(error) and 0 < len(str(error)) < 2000


@settings(max_examples=300, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=400))
def test_any_text_is_a_scenario_or_one_line(text):
    answer(text)


@settings(max_examples=500, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, len(DISK)), st.integers(0, 40), st.sampled_from(SCRAPS)), max_size=4))
def test_a_mangled_preset_is_a_scenario_or_one_line(cuts):
    text = DISK
    for at, length, scrap in cuts:
        text = text[:at] + scrap + text[at + length :]
    answer(text)


@pytest.mark.parametrize("depth", [10, 1000, 20000])
def test_depth_is_bounded(depth):
    answer("a: " + "[" * depth + "]" * depth)
