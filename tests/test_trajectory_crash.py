"""Nothing that happens to the machine loses a recorded frame. Longer versions: the scripts in ``tests/crash``."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "crash"))
import damage
import kills
import replay


def test_killed_at_random_moments_every_file_opens_and_goes_on_to_the_same_bits(tmp_path):
    seen = kills.kill_and_resume(tmp_path, 60)
    assert seen["kills"] == 60 and seen["frames acknowledged"] > 60


def test_a_crash_after_any_single_write_leaves_a_whole_file(tmp_path):
    assert replay.replay_every_write(tmp_path, frames=9) > 250


def test_nor_does_a_second_crash_while_the_first_is_mended(tmp_path):
    assert replay.replay_second_crashes(tmp_path, frames=5) > 1000


def test_a_power_cut_loses_nothing_that_the_disk_had_confirmed(tmp_path):
    assert replay.cut_the_power(tmp_path, 40) > 1000


def test_every_flipped_bit_of_a_frame_is_reported(tmp_path):
    assert damage.flip_bits(tmp_path, 60) == 60


def test_a_full_disk_ends_a_run_in_one_line_with_its_frames_whole(tmp_path):
    try:
        ends = damage.fill_disks(tmp_path, 12, spread=180_000)
    except OSError as error:
        pytest.skip(f"can't mount a disk of a chosen size: {error}")
    for end in ("refused before it began", "failed in between, the frames whole", "fitted"):
        assert ends.get(end, 0) >= 2
