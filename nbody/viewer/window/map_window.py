"""A map in a window: a click starts the simulation of that system in a window of its own."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

from nbody.child import python
from nbody.errors import InputError
from nbody.maps.stability_map import StabilityMap
from nbody.run.signals import stop_on_signals
from nbody.viewer import backends


class MapClicks:
    """Starts ``nbody view`` of the system that is clicked; one at a time per point.

    Args:
        found: the map.
        folder: for the systems' scenarios.
    """

    def __init__(self, found: StabilityMap, folder: Path) -> None:
        self._map, self._folder = found, folder
        self.started: list[Popen[bytes]] = []

    def __call__(self, event: Any) -> None:
        """Handle matplotlib's ``button_press_event``."""
        if event.inaxes is None or event.xdata is None:
            return
        try:
            scenario = self._map.at(event.xdata, None if self._map.y is None else event.ydata)
        except InputError:  # beside the map
            return
        path = self._folder / f"{scenario.name}-{len(self.started) + 1}.yaml"
        path.write_text(scenario.to_yaml())
        output = Path("output", path.stem).with_suffix(".h5")
        self.started.append(Popen(**python("-m", "nbody", "view", str(path), "-o", str(output))))


def show_map(found: StabilityMap) -> None:
    """Open the window, until the user closes it. Raises DeviceError: no window can be opened; KeyboardInterrupt: Ctrl-C."""
    backends.check_window()
    from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    application = QApplication.instance() or QApplication([])
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="nbody-"))
        canvas = FigureCanvasQTAgg(found.plot())
        canvas.mpl_connect("button_press_event", MapClicks(found, Path(folder)))
        canvas.setWindowTitle(f"{found.path}: click on a system to see it move")
        canvas.show()
        stop, timer = opened.enter_context(stop_on_signals()), QTimer()
        timer.timeout.connect(lambda: stop.requested and application.quit())
        timer.start(100)
        application.exec()
    if stop.requested:
        raise KeyboardInterrupt
