"""The server of the page: HTTP and WebSocket on one port (package websockets), on a thread of its own.

An address contains a token. One token lets its page steer, another one only watch; any other is refused. The server answers
with the page and pictures and passes events on: no request names a file or a command.
"""

import asyncio
import hashlib
import json
import logging
import math
import queue
import secrets
import socket
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.connection import broadcast
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

AHEAD = 4
"""The most pictures on their way to a page, which says when it has shown one: a slow connection gets fewer pictures, no
older ones."""

LONGEST = 2000  # bytes of an event
SILENT = 2.0  # seconds after which a connection without a whole request is closed: it would hold the end of a run up
PAGE = Path(__file__).with_name("page.html")
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
REFUSED = "403: a wrong token. Open the whole address that nbody has printed, with its ?token=…\n"

QUIET = logging.getLogger("nbody.viewer.web")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False  # connections break, and strangers knock: nothing for the terminal


def watching(token: str) -> str:
    """The token of pages that only watch; it does not reveal ``token``."""
    return hashlib.sha256(f"nbody watch {token}".encode()).hexdigest()[:22]


class Viewer(ServerConnection):
    """A page, from the moment at which it connects, also if it has not said yet what it is. It is one of ``viewers`` until
    its connection ends.

    Attributes:
        steers: its events count.
        codec: the one that it asks for; empty before it does.
        unshown: the number of pictures on their way.
        behind: the next picture must need no earlier one.
    """

    def __init__(self, viewers: "list[Viewer]", *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.steers, self.codec, self.unshown, self.behind = False, "", 0, True
        self._viewers = viewers
        viewers.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._viewers.remove(self)
        super().connection_lost(exc)

    @property
    def ready(self) -> bool:
        """True if a picture can be sent."""
        return bool(self.codec) and self.unshown < AHEAD


class Server:
    """Serves the page on the socket ``listening``, from construction until :meth:`close`.

    Attributes:
        events: what pages send, with the viewer.
        viewers: the pages that are connected.
        answered: when a page was sent, which will connect (:func:`time.monotonic`).
    """

    def __init__(self, listening: socket.socket, token: str, title: str, codecs: tuple[str, ...]) -> None:
        self._tokens = {token: True, watching(token): False}
        self._hello, self._codecs = {"title": title, "codecs": codecs}, codecs
        self.events: queue.SimpleQueue[tuple[Viewer, dict[str, Any]]] = queue.SimpleQueue()
        self.viewers: list[Viewer] = []
        self.answered = -math.inf
        self._loop = asyncio.new_event_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._thread = threading.Thread(target=self._work, args=(listening,), name="web page", daemon=True)
        self._thread.start()

    def wanted(self) -> dict[str, bool]:
        """The codecs of the viewers to which a picture can be sent; and whether it must need no earlier one."""
        ready = [viewer for viewer in tuple(self.viewers) if viewer.ready]
        return {codec: any(each.behind for each in ready if each.codec == codec) for codec in {v.codec for v in ready}}

    def send(self, codec: str, picture: bytes, key: bool) -> None:
        """Send a picture to the viewers of ``codec`` that can take it; a ``key`` picture needs no earlier one."""
        self._loop.call_soon_threadsafe(self._send, codec, bytes([key]) + picture, key)

    def tell(self, viewer: Viewer, message: dict[str, Any]) -> None:
        self._loop.call_soon_threadsafe(broadcast, [viewer], json.dumps(message))

    def refuse(self, viewer: Viewer) -> None:
        """Close the connection of a page that sends nonsense."""
        asyncio.run_coroutine_threadsafe(viewer.close(1008, "not an event"), self._loop)

    def close(self, reason: str) -> None:
        """Tell the pages why there are no more pictures, and end."""
        self._loop.call_soon_threadsafe(self._ended.set_result, reason)
        self._thread.join()

    # --- On the server's thread ---

    def _work(self, listening: socket.socket) -> None:
        self._loop.run_until_complete(self._serve(listening))
        self._loop.close()

    async def _serve(self, listening: socket.socket) -> None:
        options: dict[str, Any] = {"compression": None, "max_size": LONGEST, "close_timeout": 1, "logger": QUIET}
        options["open_timeout"] = SILENT
        options["create_connection"] = partial(Viewer, self.viewers)  # one that is accepted counts at once
        async with serve(self._talk, sock=listening, process_request=self._answer, **options):
            reason = await self._ended
            broadcast(self.viewers, json.dumps({"over": reason}))

    def _steers(self, path: str) -> bool | None:
        """Whether an address may steer; None if it has no valid token."""
        given = parse_qs(urlsplit(path).query).get("token", [""])[0].encode()
        found = [steers for token, steers in self._tokens.items() if secrets.compare_digest(token.encode(), given)]
        return found[0] if found else None

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """The answer to a request; None for a WebSocket."""
        if self._steers(request.path) is None:
            return connection.respond(403, REFUSED)
        if urlsplit(request.path).path != "/":
            return connection.respond(404, "404: there is only one page\n")
        if "Upgrade" in request.headers:
            return None
        self.answered = time.monotonic()
        response = connection.respond(200, PAGE.read_text(encoding="utf-8"))
        del response.headers["Content-Type"]
        response.headers.update(HEADERS)
        return response

    async def _talk(self, viewer: ServerConnection) -> None:
        assert isinstance(viewer, Viewer) and viewer.request is not None
        viewer.steers = bool(self._steers(viewer.request.path))
        await viewer.send(json.dumps({**self._hello, "steers": viewer.steers}))
        try:
            async for message in viewer:
                self._take(viewer, json.loads(message))
        except (ValueError, TypeError, KeyError, RecursionError):
            await viewer.close(1008, "not an event")

    def _take(self, viewer: Viewer, event: dict[str, Any]) -> None:
        """An event of a page. The drawing thread gets all of those that steer, and wakes up by the others."""
        if event["type"] == "shown":
            if not viewer.unshown:
                return  # no picture is on its way
            viewer.unshown -= 1
        elif event["type"] == "begin" and event["codec"] in self._codecs:
            viewer.codec, viewer.unshown, viewer.behind = event["codec"], 0, True
        elif not viewer.steers:
            return
        self.events.put((viewer, event))

    def _send(self, codec: str, message: bytes, key: bool) -> None:
        to = []
        for viewer in self.viewers:
            if viewer.codec == codec:
                viewer.behind = not viewer.ready or (viewer.behind and not key)
                if not viewer.behind:
                    viewer.unshown += 1
                    to.append(viewer)
        broadcast(to, message)
