"""What a recorded graph leaves behind when its recording fails, with a driver that only takes notes."""

import sys
from types import SimpleNamespace

import pytest

from nbody.compute.gpu.graph import Graph
from nbody.errors import DeviceError

GOOD, BAD = SimpleNamespace(name="CUDA_SUCCESS"), SimpleNamespace(name="CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")


class Driver:
    """Answers every call with success, but for that named ``failing``, and keeps their names."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=GOOD)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)

    def __init__(self, failing):
        self.failing, self.calls = failing, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            return (BAD,) if name == self.failing else (GOOD, f"{name}'s")

        call.__name__ = name
        return call


def fails():
    raise ZeroDivisionError("in the work")


@pytest.mark.parametrize(
    ("failing", "work", "error", "left"),
    [
        ("", fails, ZeroDivisionError, 0),
        ("cuStreamEndCapture", fails, ZeroDivisionError, 0),  # which the error of the work broke
        ("cuStreamEndCapture", lambda: None, "cuStreamEndCapture failed with CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", 0),
        ("cuGraphInstantiate", lambda: None, "cuGraphInstantiate failed", 1),
        ("", lambda: None, None, 1),
    ],
)
def test_a_recording_is_ended_and_its_graph_destroyed_whatever_fails(monkeypatch, failing, work, error, left):
    """An error of the work is not hidden by that of the capture that it broke."""
    driver = Driver(failing)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
    if error is None:
        Graph(SimpleNamespace(handle=7), work)
    else:
        kind, message = (DeviceError, error) if isinstance(error, str) else (error, "in the work")
        with pytest.raises(kind, match=message):
            Graph(SimpleNamespace(handle=7), work)
    calls = driver.calls
    assert calls.count("cuStreamBeginCapture") == calls.count("cuStreamEndCapture") == 1
    assert calls.count("cuGraphDestroy") == (failing != "cuStreamEndCapture")
    assert calls.count("cuGraphInstantiate") == left
    assert calls.count("cuGraphExecDestroy") == (left and failing == "")
