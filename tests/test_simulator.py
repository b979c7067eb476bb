"""The tests with the marker ``simulated``, which need Numba's simulator: it is chosen when Numba is imported."""

from pathlib import Path

import pytest
from conftest import child

FILES = sorted(Path(__file__).parent.glob("test_*.py"))
FILES = [path for path in FILES if "mark.simulated" in path.read_text() and path != Path(__file__)]


@pytest.mark.slow
def test_the_tests_of_these_files_pass_in_the_simulator():
    options = ["-o", "addopts=", "-p", "no:cacheprovider", "-m", "simulated"]
    ran = child("-m", "pytest", *options, *FILES, env={"NUMBA_ENABLE_CUDASIM": "1"}, timeout=1200)
    assert ran.returncode == 0, ran.stdout[-3000:]
