"""The tests with the marker ``simulated``, which need Numba's simulator: it is chosen when Numba is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = [
    path
    for path in sorted(Path(__file__).parent.glob("test_*.py"))
    if "mark.simulated" in path.read_text() and path != Path(__file__)
]


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_tests_of_a_file_pass_in_the_simulator(file):
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "-p", "no:cacheprovider", "-m", "simulated", file]
    ran = subprocess.run(command, env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:]
