"""A user's session with a scenario that is computed while it is shown, typed by Qt's synthetic events.

    python tests/live_session.py SCENARIO.yaml OUTPUT.h5 FOLDER SECONDS quit|interrupt

A step takes SECONDS longer than it does, without the interpreter's lock. Prints one JSON object: what was shown after each
act, the pictures drawn since the act before, and the threads and child processes after the end. The pictures are
FOLDER/<act>.png.
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
from nbody.viewer.picture.aim import Aim
from nbody.viewer.picture.look import Look
from nbody.viewer.window import show as window

scenario, output, folder, seconds, end = *map(Path, sys.argv[1:4]), float(sys.argv[4]), sys.argv[5]
INTERRUPTED = (("shown", ""), ("records", "O"))
ACTS = (("shown", ""), ("runs", ""), ("paused", "Space"), ("step", "Right"), ("records", "O"), ("more", "Right"),
        ("saved", "S"), ("stopped", "O"), ("restarted", "Home"), ("faster", "Up"), ("goes on", "Space"))  # fmt: skip
seen: dict[str, dict] = {}


def slowly(make=Simulation.__init__):
    def slow(self, *arguments, **options):
        make(self, *arguments, **options)
        compute = self.engine._compute

        def with_a_rest(state, want):
            for _ in range(20):
                time.sleep(seconds / 20)
                state.report(0)
            compute(state, want)

        self.engine._compute = with_a_rest

    Simulation.__init__ = slow


def drive(pane):
    """Begin the session: an act, then time to draw; while it waits, the mouse turns the view."""
    from PySide6.QtCore import Qt, QTimer
    from PySide6.QtTest import QTest

    todo, drawn, state = iter(INTERRUPTED if end == "interrupt" else ACTS), [0], {"name": "", "until": 0.0}
    pane.events.draw.connect(lambda event: drawn.__setitem__(0, drawn[0] + 1))

    def note():
        clock, source = pane.transport, pane.source
        seen[state["name"]] = {
            "step": source.caption(0).step, "playing": clock.playing, "status": clock._describe(), "drawn": drawn[0],
            "note": source.caption(0).note, "notice": pane.notice, "recording": str(clock.run.recording or ""),
        }  # fmt: skip
        drawn[0] = 0
        pane.native.grabFramebuffer().save(str(folder / f"{state['name']}.png"))

    def tick():
        pane.controls.camera.azimuth += 0.01  # as a drag does; each change is drawn
        pane.update()
        if time.monotonic() < state["until"] or (not state["name"] and pane.renderer is None):
            return
        if state["name"]:
            note()
        name, key = next(todo, ("", ""))
        if not name:
            timer.stop()
            if end == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            else:
                QTest.keyClick(pane.native, Qt.Key.Key_Q)
            return
        state.update(name=name, until=time.monotonic() + max(0.4, 2.5 * seconds if key not in ("Space", "Up") else 0))
        if key:
            QTest.keyClick(pane.native, getattr(Qt.Key, f"Key_{key}"))

    timer = QTimer(pane.native)
    timer.timeout.connect(tick)
    timer.start(20)


def shown(source, clock, real=window.show, **options):
    real(source, clock, drive, **options)


window.show = shown
slowly()
interrupted = False
try:
    view_scenario(Scenario.load(scenario), output, False, Look(), Aim())
except KeyboardInterrupt:
    interrupted = True
left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread() and thread.is_alive()]
print(
    json.dumps(
        {"seen": seen, "threads": left, "children": len(multiprocessing.active_children()), "interrupted": interrupted}
    )
)
