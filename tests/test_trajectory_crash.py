"""Nothing that happens to the machine loses a recorded frame.

Each test takes a sample of seconds; ``pytest -m campaign`` takes one of minutes, and the scripts in ``tests/crash`` any."""

import sys
from pathlib import Path

import pytest
from conftest import sample

sys.path.insert(0, str(Path(__file__).parent / "crash"))
import damage
import kills
import replay


@pytest.mark.parametrize("count", sample([12, 600], 1))
def test_killed_at_random_moments_every_file_opens_and_is_resumed_to_the_same_bits(tmp_path, count):
    seen = kills.kill_and_resume(tmp_path, count)
    assert seen["kills"] == count and seen["frames acknowledged"] > count


@pytest.mark.parametrize("frames", sample([4, 20], 1))
def test_a_crash_after_any_single_write_leaves_a_whole_file(tmp_path, frames):
    assert replay.replay_every_write(tmp_path, frames) > 25 * frames


@pytest.mark.parametrize("frames", sample([2, 12], 1))
def test_so_does_a_second_crash_while_the_run_is_resumed(tmp_path, frames):
    assert replay.replay_second_crashes(tmp_path, frames) > 100 * frames


@pytest.mark.parametrize("count", sample([12, 1500], 1))
def test_a_power_cut_loses_nothing_that_the_disk_had_confirmed(tmp_path, count):
    assert replay.cut_the_power(tmp_path, count) > 20 * count


@pytest.mark.parametrize("count", sample([60, 1000], 1))
def test_every_flipped_bit_of_a_frame_is_reported(tmp_path, count):
    assert damage.flip_bits(tmp_path, count) == count


def test_a_full_disk_ends_a_run_with_its_frames_whole(tmp_path):
    try:
        ends = damage.fill_disks(tmp_path, 12, spread=180_000)
    except OSError as error:
        pytest.skip(f"can't mount a disk of a chosen size: {error}")
    for end in ("refused before it began", "failed in between, the frames whole", "fitted"):
        assert ends.get(end, 0) >= 2
