"""Shows a window on a page: draws what is due, encodes it while the next picture is drawn, passes events on."""

import queue
import re
import secrets
import socket
import time
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nbody import install
from nbody.errors import DeviceError, InputError, last_line
from nbody.run.signals import stop_on_signals
from nbody.viewer import backends
from nbody.viewer.picture.aim import Display
from nbody.viewer.sources.frames import Array
from nbody.viewer.sources.source import Source
from nbody.viewer.window.clock import Playback
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.viewer.web.pictures import Jpeg
    from nbody.viewer.web.server import Server, Viewer
    from nbody.viewer.window.offscreen import OffscreenWindow

TICK = 1 / 60  # seconds between updates of the clock
MOST_EVENTS = 200  # handled between two pictures
LAST_TICKS = 300  # how long the last picture of a run may take, to those who have connected before its end
ARRIVAL = 1.0  # seconds that a page takes to connect
LOOPBACK = "127.0.0.1"
TOKEN = re.compile(r"[\w-]{8,}", re.ASCII)


@dataclass
class Page:
    """A page on ``host`` and ``port`` (0: a free one) instead of a window, as :class:`~nbody.viewer.window.show.Desktop`;
    without ``token`` it is random. ``announce`` gets the address."""

    announce: Notify
    host: str = LOOPBACK
    port: int = 8000
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    option = "--web"

    def check(self) -> None:
        """Load what a page needs, and listen. Raises DeviceError if a package or OpenGL is missing, InputError if the port
        can't be had."""
        if not find_spec("websockets"):
            raise DeviceError(f"a page needs the package websockets: {install.install_extra('web')}")
        backends.use_screenless()
        import nbody.viewer.web.pictures
        import nbody.viewer.web.server  # noqa: F401

        if not TOKEN.fullmatch(self.token):
            raise InputError("--token: must have 8 or more letters, digits, - or _")
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            self._listening = socket.create_server((self.host, self.port), family=family)
        except (OSError, OverflowError) as error:
            reason = str(getattr(error, "strerror", None) or error).split(" (while")[0]
            raise InputError(f"--host {self.host} --port {self.port}: can't be had ({reason}); --port 0 is free") from error

    def show(
        self, source: Source, transport: Playback, view: Display = Display(), lost: Callable[[], int] | None = None
    ) -> None:
        """Show moments of ``source`` by the clock ``transport`` until a page or Ctrl-C ends it, or the run is done; then
        close both. Raises as a window does."""
        from nbody.viewer.web.pictures import codecs
        from nbody.viewer.web.server import Server, watching
        from nbody.viewer.window.offscreen import OffscreenWindow

        reason = "The view has been closed."
        server = Server(self._listening, self.token, f"{source.name} · nbody", codecs())
        try:
            window = OffscreenWindow(source, transport, view)
            self._tell(watching(self.token))
            with stop_on_signals() as window.stop:
                _Session(window, server).run()
            if window.stop.requested:
                raise KeyboardInterrupt
            if transport.done:
                reason = "The run has ended."
        except BaseException as error:
            reason = f"The view has ended: {last_line(error, 'it was stopped')}."
            raise
        finally:
            server.close(reason)
            transport.close()
            source.close()

    def _tell(self, watching: str) -> None:
        port = self._listening.getsockname()[1]
        name = socket.gethostname()
        host = self.host if self.host not in ("0.0.0.0", "::") else name
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/?token="
        self.announce(f"open {address}{self.token} in a browser; to watch only: {address}{watching}")
        if self.host == LOOPBACK:
            self.announce(f"on another machine after: ssh -L {port}:{LOOPBACK}:{port} {name}")


class _Session:
    """Draws ``window`` for the pages of ``server``."""

    def __init__(self, window: "OffscreenWindow", server: "Server") -> None:
        self._window, self._server = window, server
        self._encoding: Future[None] | None = None
        self._formats: dict[str, Jpeg] = {}
        self._tick_at = time.monotonic()

    def run(self) -> None:
        """Draw until the window is closed, or the run is done and its last picture has been sent."""
        window, left = self._window, LAST_TICKS
        with ThreadPoolExecutor(1) as self._encoder, TemporaryDirectory(prefix="nbody-") as folder:
            window.folder = Path(folder)
            window.draw()  # an error of OpenGL is reported at once; and a run begins when it is drawn first
            window.due = True
            while not (window.closed or left <= 0):
                self._handle_events()
                done = window.transport.done  # before its last picture is taken
                window.on_timer(None)
                wanted = self._server.wanted()
                if wanted and not window.closed and (window.due or any(wanted.values())):
                    self._draw(wanted)
                if done:
                    left = left - 1 if self._awaited() else 0
            self._wait()
        if window.failure:
            raise window.failure

    def _awaited(self) -> bool:
        """True if a page has not got the latest picture."""
        server = self._server
        if time.monotonic() - server.answered < ARRIVAL and not server.viewers:
            return True
        return any(self._window.due or viewer.behind for viewer in tuple(server.viewers))

    def _draw(self, wanted: dict[str, bool]) -> None:
        """Draw a picture, and have it encoded and sent while the next one is drawn."""
        from nbody.viewer.web.pictures import CODECS

        self._window.draw()
        pictures = []
        for codec, key in wanted.items():
            made = self._formats.get(codec)
            if made is None or made.texture is not self._window.texture:
                made = self._formats[codec] = CODECS[codec](self._window)
            pictures.append((codec, made, made.read(), key))
        self._wait()
        self._encoding = self._encoder.submit(self._send, pictures)

    def _send(self, pictures: "list[tuple[str, Jpeg, Array, bool]]") -> None:
        for codec, made, picture, key in pictures:
            self._server.send(codec, *made.encode(picture, key))

    def _wait(self) -> None:
        """Wait for the encoder. Raises its error."""
        if self._encoding is not None:
            self._encoding.result()

    def _handle_events(self) -> None:
        """Wait for the next tick, or an event; handle those that wait; send the files that keys have saved."""
        wait, self._tick_at = max(0.0, self._tick_at - time.monotonic()), time.monotonic() + TICK
        with suppress(queue.Empty):
            for _ in range(MOST_EVENTS):
                viewer, event = self._server.events.get(timeout=wait)
                wait = 0.0
                try:
                    self._handle(viewer, event)
                except (KeyError, TypeError, ValueError, ArithmeticError):
                    self._server.refuse(viewer)
        for path in self._window.folder.iterdir():
            self._server.tell(self._asking, {"download": path.name, "data": b64encode(path.read_bytes()).decode()})
            path.unlink()

    def _handle(self, viewer: "Viewer", event: dict[str, Any]) -> None:
        controls = self._window.controls
        if event.get("key") != "Escape" or controls.show_keys or controls.chosen is not None:
            # (Escape also ends the browser's full screen, and should not end the command.)
            if event["type"] == "key_down" and viewer.steers:
                self._asking = viewer
            self._window.handle(event)
