"""A user's session with a scenario that is computed while it is shown, typed by Qt's synthetic events.

    python tests/programs/live_session.py SCENARIO.yaml OUTPUT.h5 FOLDER SECONDS quit|interrupt

A step takes SECONDS longer than it does, and until three pictures have been drawn during it. Prints one JSON object: what
was shown after each act, the most pictures drawn in a step, and the threads and child processes after the end. The pictures
are FOLDER/<act>.png.
"""

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

from nbody.cli.live import view_scenario
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.viewer.picture.aim import Display
from nbody.viewer.window.show import Desktop

scenario, output, folder, seconds, end = *map(Path, sys.argv[1:4]), float(sys.argv[4]), sys.argv[5]
TIMEOUT = 60.0
"""Seconds that an act may take; usually it takes one."""


def acts(pane):
    """Name, key, and when it has had its effect."""
    clock, source, run = pane.transport, pane.source, pane.source.run

    def step():
        return source.caption(clock.at).step

    def rests():
        return (
            run.begun
            and not run.pace.playing
            and not run.simulation.stepper.within_a_step
            and step() == run.simulation.steps_made
        )

    before = [0]

    def one_more():
        return rests() and step() == before[0] + 1

    def remember():
        before[0] = step()
        return True

    yield "shown", "", lambda: pane.renderer is not None
    if end == "interrupt":
        yield "records", "O", lambda: run.recording and run.simulation.stepper.within_a_step
        return
    yield "runs", "", lambda: step() > 0
    yield "paused", "Space", lambda: rests() and remember()
    yield "step", "Right", lambda: one_more() and remember()
    yield "records", "O", lambda: run.recording and rests()
    yield "more", "Right", one_more
    yield "saved", "S", lambda: "saved" in pane.notice
    yield "stopped", "O", lambda: not run.recording and not run._command
    yield "back", "Left", lambda: "End: the present" in clock.status and step() == before[0]
    yield "first", "Home", lambda: "End: the present" in clock.status and step() == 0
    yield "restarted", "Home", lambda: rests() and step() == 0
    yield "faster", "Up", lambda: run.pace.steps_per_picture == 2
    yield "goes on", "Space", lambda: clock.playing


seen: dict = {}
state: dict = {"name": "", "done": lambda: True, "since": time.monotonic(), "step": None, "drawn": 0, "pictures": 0}


def open_in(simulation):
    """True if a window shows this step."""
    return "most drawn in a step" in seen and simulation.stepper.within_a_step


def slowly(make=Simulation.__init__):
    def slow(self, *arguments, **options):
        make(self, *arguments, **options)
        compute = self.setup.engine._compute

        def with_a_rest(bodies, outputs):
            state["pictures"], rested = 0, time.monotonic() + seconds
            while time.monotonic() < rested or (open_in(self) and state["pictures"] < 3):
                time.sleep(0.01)
                bodies.progress.report(0)
            compute(bodies, outputs)

        self.setup.engine._compute = with_a_rest

    Simulation.__init__ = slow


def drive(pane):
    """Begin the session: each act when the one before has had its effect; meanwhile the view turns."""
    from PySide6.QtCore import Qt, QTimer
    from PySide6.QtTest import QTest

    run, todo = pane.source.run, acts(pane)
    state["since"] = time.monotonic()

    def drew(event):
        """Count the pictures that are drawn during one step."""
        step = (run.simulation.steps_made, run.simulation.stepper.within_a_step)
        state["pictures"] += 1
        state["drawn"] = state["drawn"] + 1 if step == state["step"] and step[1] else 0
        state["step"] = step
        seen["most drawn in a step"] = max(seen.get("most drawn in a step", 0), state["drawn"])

    pane.events.draw.connect(drew)

    def note():
        clock, source = pane.transport, pane.source
        seen[state["name"]] = {
            "step": source.caption(clock.at).step, "playing": clock.playing, "status": clock.status,
            "notice": pane.notice, "recording": str(run.recording or ""),
        }  # fmt: skip
        pane.native.grabFramebuffer().save(str(folder / f"{state['name']}.png"))

    def tick():
        pane.controls.camera.azimuth += 0.01  # as a drag does; each change is drawn
        pane.update()
        late = time.monotonic() - state["since"] > TIMEOUT
        if not (state["done"]() or late):
            return
        if state["name"]:
            note()
        name, key, done = next(todo, ("", "", None))
        if not name or late:
            timer.stop()
            if end == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            else:
                QTest.keyClick(pane.native, Qt.Key.Key_Q)
            return
        state.update(name=name, done=done, since=time.monotonic())
        if key:
            QTest.keyClick(pane.native, getattr(Qt.Key, f"Key_{key}"))

    timer = QTimer(pane.native)
    timer.timeout.connect(tick)
    timer.start(20)


def shown(screen, source, clock, view, lost=None, real=Desktop.show):
    real(screen, source, clock, view, lost, drive)


Desktop.show = shown
slowly()
interrupted = False
try:
    view_scenario(Scenario.load(scenario), output, False, Display(), Desktop())
except KeyboardInterrupt:
    interrupted = True
left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread() and thread.is_alive()]
print(
    json.dumps(
        {"seen": seen, "threads": left, "children": len(multiprocessing.active_children()), "interrupted": interrupted}
    )
)
