"""What a recorded graph leaves behind when its recording fails, with a driver that only takes notes."""

import sys
from types import SimpleNamespace

import pytest

from nbody.compute.gpu.graph import Graph
from nbody.errors import DeviceError

GOOD, BAD = SimpleNamespace(name="CUDA_SUCCESS"), SimpleNamespace(name="CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")


class Driver:
    """Answers every call with success, but for those named in ``failing``, and keeps their names."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=GOOD)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)

    def __init__(self, *failing):
        self.failing, self.calls = failing, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            return (BAD,) if name in self.failing else (GOOD, f"{name}'s")

        call.__name__ = name
        return call


@pytest.fixture
def recorded(monkeypatch):
    """A function: the calls that recording ``work`` makes with a driver, and the error that comes out."""

    def record(driver, work):
        monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(__path__=[]))
        monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
        error = None
        try:
            Graph(SimpleNamespace(handle=7), work)
        except Exception as caught:
            error = caught
        return driver.calls, error

    return record


def fails():
    raise ZeroDivisionError("in the work")


BEGUN_AND_ENDED = ["cuStreamBeginCapture", "cuStreamEndCapture"]


def test_an_error_of_the_work_comes_out_and_the_capture_is_ended(recorded):
    calls, error = recorded(Driver(), fails)
    assert isinstance(error, ZeroDivisionError)
    assert calls[:3] == [*BEGUN_AND_ENDED, "cuGraphDestroy"]


def test_an_error_of_the_work_is_not_masked_by_that_of_the_capture_it_broke(recorded):
    calls, error = recorded(Driver("cuStreamEndCapture"), fails)
    assert isinstance(error, ZeroDivisionError)
    assert calls[:2] == BEGUN_AND_ENDED


def test_a_capture_that_fails_without_an_error_of_the_work_is_reported(recorded):
    _, error = recorded(Driver("cuStreamEndCapture"), lambda: None)
    assert isinstance(error, DeviceError)
    assert "cuStreamEndCapture failed with CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" in str(error)


def test_a_graph_that_can_not_be_instantiated_is_destroyed_all_the_same(recorded):
    calls, error = recorded(Driver("cuGraphInstantiate"), lambda: None)
    assert "cuGraphInstantiate failed" in str(error)
    assert calls[:4] == [*BEGUN_AND_ENDED, "cuGraphInstantiate", "cuGraphDestroy"]


def test_a_graph_is_recorded_and_given_back(recorded):
    driver = Driver()
    calls, error = recorded(driver, lambda: driver.calls.append("work"))
    assert error is None
    assert calls == [
        "cuStreamBeginCapture", "work", "cuStreamEndCapture", "cuGraphInstantiate", "cuGraphDestroy",
        "cuGraphExecDestroy",
    ]  # fmt: skip
