"""The window as a page: pictures arrive and decode, keys and mouse steer, tokens protect, connections and runs may end."""

import io
import json
import os
import re
import shutil
import socket
import threading
import time
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
from PIL import Image
from recordings import cloud, plummer_text, record

from nbody.cli import main
from nbody.trajectory import Trajectory
from nbody.viewer.picture.aim import Display
from nbody.viewer.window.clock import Playback

pytest.importorskip("websockets")
av = pytest.importorskip("av")

from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from nbody.viewer.web.server import AHEAD, PAGE, watching  # noqa: E402
from nbody.viewer.web.show import Page  # noqa: E402

SECONDS = 60.0
"""The longest wait; usually it takes a thousandth of that."""

SIZE = (320, 240)


class Browser:
    """What the page does, without one."""

    def __init__(self, address, codec="h264", sock=None):
        self.socket = connect(address.replace("http", "ws", 1), max_size=None, compression=None, sock=sock).__enter__()
        self.hello = json.loads(self.socket.recv(timeout=SECONDS))
        self.codec, self.messages = codec, []
        self._decoder = av.CodecContext.create("h264", "r")
        self.send("begin", codec=codec)

    def send(self, kind, **more):
        self.socket.send(json.dumps({"type": kind, **more}))

    def key(self, key):
        self.send("key_down", key=key)

    def take(self, shown=True):
        """The next message with a picture."""
        while isinstance(message := self.socket.recv(timeout=SECONDS), str):
            self.messages.append(json.loads(message))
        with suppress(ConnectionClosed):  # there may be a message before its end
            if shown:
                self.send("shown")
        return message

    def picture(self):
        """The next picture, (h, w, RGB)."""
        data = self.take()[1:]
        if self.codec == "jpeg":
            return np.asarray(Image.open(io.BytesIO(data))).astype(int)
        (frame,) = self._decoder.decode(av.Packet(data))
        return frame.to_ndarray(format="rgb24").astype(int)

    def quiet(self, clock, shown=True):
        """What comes until nothing new does: until no picture was drawn in ten looks at the clock."""
        taken, last = [], (0, 0)
        while clock.pictures > last[1] or clock.looks < last[0] + 10:
            if clock.pictures > last[1]:
                last = clock.looks, clock.pictures
            with suppress(TimeoutError):
                while True:
                    taken.append(self.socket.recv(timeout=0.1))
                    if shown:
                        self.send("shown")
        return taken

    def until(self, condition):
        """The first picture for which ``condition`` holds."""
        end = time.monotonic() + SECONDS
        while not condition(picture := self.picture()):
            assert time.monotonic() < end, "it did not happen"
        return picture

    def message(self, name):
        """The value of the next message that has ``name``, among pictures."""
        while not any(name in each for each in self.messages):
            with suppress(TypeError):
                self.take()
        return next(each for each in self.messages if name in each)

    def over(self):
        """The message at the end, after which the connection is closed."""
        with pytest.raises(ConnectionClosed):
            while True:
                self.take()
        return next(each["over"] for each in self.messages if "over" in each)


class CountingClock(Playback):
    """Counts how often it was looked at, and the pictures."""

    looks = pictures = 0

    def advance(self, seconds):
        self.looks += 1
        return super().advance(seconds)

    def drawn(self):
        self.pictures += 1
        super().drawn()


def differ(one, other):
    """The fraction of pixels that differ visibly."""
    return (abs(one - other).max(axis=2) > 40).mean()


@pytest.fixture
def shown(egl, recorded):
    """A function that shows a recording of 8 frames on a page, paused, while ``visit`` is called on a thread with the
    address; it returns the result."""

    def show(visit):
        source, lines = recorded(*cloud(300, 8)), []
        show.clock = clock = CountingClock(source.frames, source=source)
        clock.playing = False
        page = Page(lines.append, port=0)
        page.check()

        def visiting():
            while not lines:
                time.sleep(0.005)
            address = lines[0].split()[1]
            try:
                return visit(address)
            finally:
                with suppress(ConnectionClosed, OSError):  # it has ended
                    Browser(address).key("q")

        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(visiting)
            page.show(source, clock, Display(size=SIZE))
            assert "ssh -L" in lines[1]
            return future.result()

    return show


@pytest.mark.parametrize("codec", ["h264", "jpeg"])
def test_pictures_decode_and_keys_and_mouse_change_them(shown, codec):
    def visit(address):
        browser = Browser(address, codec)
        first = browser.picture()
        assert first.shape == (240, 320, 3) and first.max() > 150
        browser.key("h")  # the text
        bare = browser.until(lambda now: differ(now, first) > 0.01)
        browser.key("F1")  # the keys are shown where the text is hidden, too
        table = browser.until(lambda now: differ(now, bare) > 0.03)
        browser.key("F1")
        bare = browser.until(lambda now: differ(now, table) > 0.03)
        browser.key("End")
        end = browser.until(lambda now: differ(now, bare) > 0.005)
        browser.key("ArrowLeft")
        left = browser.until(lambda now: differ(now, end) > 0.005)
        browser.send("pointer_down", x=100, y=50, button=1)
        browser.send("pointer_move", x=140, y=60)
        browser.send("pointer_up", x=140, y=60)
        turned = browser.until(lambda now: differ(now, left) > 0.005)
        browser.send("wheel", x=160, y=120, dy=-300)
        browser.until(lambda now: differ(now, turned) > 0.005)
        browser.send("resize", width=201, height=151, ratio=1.0)
        browser.until(lambda now: now.shape == (150, 200, 3))
        browser.key("q")
        return browser.over()

    assert "closed" in shown(visit)


def test_only_the_right_token_opens_the_page_and_there_is_nothing_else(shown):
    def visit(address):
        base = address.split("?")[0]
        wrong = [base, base + "?token=", address[:-1], base + "?token=é", base + "page.html"]
        for each, status in [(each, 403) for each in wrong] + [(address.replace("/?", "/etc/passwd?"), 404)]:
            with pytest.raises(HTTPError) as refused:
                urlopen(each.replace("é", "%C3%A9"))
            with refused.value as answer:
                assert answer.code == status
        with pytest.raises(InvalidStatus, match="403"):
            Browser(address[:-1])
        with urlopen(address) as answer:
            assert answer.read().decode() == PAGE.read_text()
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers.get_all("Content-Type") == ["text/html; charset=utf-8"]

    shown(visit)
    assert not re.search(r'(src|href)="(?!data:)|://|@import|url\(', PAGE.read_text())  # nothing from elsewhere


def test_who_only_watches_sees_everything_and_changes_nothing(shown):
    def visit(address):
        base, token = address.split("token=")
        watcher, steering = Browser(f"{base}token={watching(token)}"), Browser(address)
        assert (watcher.hello["steers"], steering.hello["steers"]) == (False, True)
        before, _ = watcher.picture(), steering.picture()
        watcher.quiet(shown.clock)
        for event in ("End", "h", "q"):
            watcher.key(event)
        watcher.send("resize", width=100, height=100, ratio=1)
        for _ in range(1000):
            watcher.send("shown")
        assert not watcher.quiet(shown.clock)
        steering.key("End")
        watcher.until(lambda now: differ(now, before) > 0.005)
        assert watching(token) not in (token, watching(watching(token)))

    shown(visit)


def test_a_page_that_falls_behind_holds_up_no_other_and_goes_on_with_a_whole_picture(shown):
    def visit(address):
        slow, other = Browser(address), Browser(address)
        for browser in (slow, other):
            browser.take()
        for browser in (slow, other):
            browser.quiet(shown.clock)
        for _ in range(2 * AHEAD):
            other.key("h")
            other.take()
        taken = slow.quiet(shown.clock, shown=False)
        assert len(taken) == AHEAD and taken[-1][0] == 0  # a difference to the picture before
        for _ in taken:
            slow.send("shown")
        assert slow.take()[0] == 1

    shown(visit)


def test_a_lost_connection_and_nonsense_end_one_page_and_no_other(shown):
    def visit(address):
        other = Browser(address)
        other.picture()
        for nonsense in ("{", "[1]", "{}", '{"type": "wheel", "x": 1, "y": 1, "dy": 1e999}', "x" * 5000, b"\0", "[" * 1900,
                         '{"type": "resize", "width": 320, "height": 240, "ratio": NaN}',
                         '{"type": "resize", "width": 0, "height": 1, "ratio": 1}', '{"type": "key_down"}'):  # fmt: skip
            bad = Browser(address)
            bad.take()
            bad.socket.send(nonsense)
            with pytest.raises(ConnectionClosed):
                while True:
                    bad.socket.recv(timeout=SECONDS)
        lost = Browser(address)
        lost.take()
        lost.socket.socket.shutdown(socket.SHUT_RDWR)
        again = Browser(address)
        assert again.take()[0] == 1
        before = other.picture()
        other.key("End")
        other.until(lambda now: differ(now, before) > 0.005)

    shown(visit)


def test_pictures_and_views_are_saved_by_the_browser(shown, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def visit(address):
        browser, found = Browser(address, "jpeg"), []
        for key in ("s", "v"):
            browser.key(key)
            found.append(browser.message("download"))
            browser.messages.clear()
        browser.key("Escape")  # ends no command
        browser.key("F11")
        browser.picture()
        return found

    picture, view = shown(visit)
    assert Image.open(io.BytesIO(b64decode(picture["data"]))).size == SIZE
    assert picture["download"].endswith(".png") and b"azimuth" in b64decode(view["data"])
    assert not list(os.scandir())


SCENARIO = plummer_text(40, 60, 0.01, engine="reference", precision="float64")


@contextmanager
def visited(visit, port, slow=0.0):
    """Call ``visit`` on a thread as soon as something listens at ``port``; the browser begins to speak after ``slow``
    seconds."""

    def visiting():
        sock = first_connection(port)
        time.sleep(slow)
        return visit(Browser(f"http://127.0.0.1:{port}/?token=abcdefgh", sock=sock))

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(visiting)


def first_connection(port):
    """A connection to what listens at ``port``, as soon as something does."""
    while True:
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", port))
        time.sleep(0.01)


@contextmanager
def connected(port):
    """Connect, as soon as something listens at ``port``, and say nothing."""
    with ThreadPoolExecutor(1) as pool:
        connection = pool.submit(first_connection, port)
        yield
        connection.result().close()


@pytest.fixture
def port():
    """The number of a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.mark.parametrize("slow", [0.0, 1.0], ids=["at once", "when the run has ended"])
def test_who_connects_before_a_run_ends_gets_its_last_picture_and_learns_the_end(
    egl, tmp_path, port, capsys, monkeypatch, slow
):
    monkeypatch.setattr("nbody.viewer.web.server.SILENT", SECONDS)
    monkeypatch.setattr("nbody.viewer.web.show.LAST_TICKS", 60 * SECONDS)
    scenario, output = tmp_path / "few.yaml", tmp_path / "run.h5"
    scenario.write_text(SCENARIO)
    with visited(lambda browser: (browser.picture().max() > 100, browser.over()), port, slow) as result:
        command = ["run", scenario, "--web", "--port", port, "--token", "abcdefgh", "-o", output, "--json"]
        assert main([str(each) for each in command]) == 0
        assert result.result()[0] and "The run has ended" in result.result()[1]
    assert f"http://127.0.0.1:{port}/?token=abcdefgh" in (printed := capsys.readouterr()).err
    assert json.loads(printed.out)["frames"] == len(Trajectory(output))
    assert not [thread for thread in threading.enumerate() if thread.name == "web page"]


def test_a_run_needs_nobody_who_looks(egl, tmp_path, port, capsys, monkeypatch):
    """Nor does a connection that says nothing hold its end up."""
    monkeypatch.setattr("nbody.viewer.web.server.SILENT", 0.1)
    monkeypatch.setattr("nbody.viewer.web.show.LAST_TICKS", 60 * SECONDS)
    (tmp_path / "few.yaml").write_text(SCENARIO)
    command = ["run", tmp_path / "few.yaml", "--web", "--port", port, "-o", tmp_path / "run.h5", "--quiet", "--json"]
    took = []
    for context in (nullcontext(), connected(port)):
        begun = time.monotonic()
        with context:
            assert main([str(each) for each in command]) == 0
        took.append(time.monotonic() - begun)
        assert json.loads(capsys.readouterr().out)["frames"] == len(Trajectory(tmp_path / "run.h5"))
    assert took[1] - took[0] < 8.0  # without SILENT: 10


def test_a_scenario_is_steered_by_its_page(egl, tmp_path, port):
    (tmp_path / "few.yaml").write_text(SCENARIO)

    def visit(browser):
        first = browser.picture()
        browser.until(lambda now: differ(now, first) > 0.002)
        browser.key("q")
        return browser.over()

    with visited(visit, port) as result:
        command = ["view", tmp_path / "few.yaml", "--web", "--port", port, "--token", "abcdefgh", "--size", "320x240"]
        assert main([str(each) for each in command]) == 0
        assert "closed" in result.result()


def test_what_prevents_a_page_is_told(egl, tmp_path, port, refused, monkeypatch):
    run = record(tmp_path / "run.h5", cloud(10, 2))
    with socket.create_server(("127.0.0.1", port)):
        assert f"--port {port}: can't be had" in refused("view", run, "--web", "--port", port)
        output = tmp_path / "new.h5"
        assert "--port" in refused("run", "plummer", "--web", "--port", port, "-o", output) and not output.exists()
    assert "--port 70000" in refused("view", run, "--web", "--port", 70000)
    assert "--host nowhere.invalid" in refused("view", run, "--web", "--host", "nowhere.invalid")
    assert "add --web" in refused("view", run, "--port", port) and "add --web" in refused("run", "plummer", "--token", "a")
    assert "--token" in refused("view", run, "--web", "--token", "a&b=?")
    assert "--web" in refused("view", run, "--web", "--screenshot", "a.png")
    monkeypatch.setattr("nbody.viewer.web.show.find_spec", lambda name: None)
    assert "[web]" in refused("run", "plummer", "--web")
    assert "leave --web out" in refused("run", "plummer", "--web")


@pytest.mark.more
def test_a_browser_shows_steers_and_watches_and_connects_again(shown, recorded, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("no Chromium here")

    def picture(page):
        return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)

    def until(page, before, least=0.005):
        end = time.monotonic() + SECONDS
        while differ(now := picture(page), before) < least:
            assert time.monotonic() < end, "it did not happen"
        return now

    def visit(address):
        base, token = address.split("token=")
        with sync_api.sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page, old = (browser.new_page(viewport={"width": 640, "height": 400}) for _ in range(2))
            errors = []
            page.on("pageerror", lambda error: errors.append(error))
            old.add_init_script("delete window.VideoDecoder")
            page.goto(address)
            old.goto(f"{base}token={watching(token)}")
            for each in (page, old):
                each.wait_for_selector("#note", state="hidden")
            assert (page.evaluate("codec"), old.evaluate("codec")) == ("h264", "jpeg")
            assert page.evaluate("canvas.width") == old.evaluate("canvas.width") == 640
            first, seen = picture(page), picture(old)
            page.keyboard.press("End")
            end, _ = until(page, first), until(old, seen)
            old.keyboard.press("Home")  # only watches
            page.mouse.move(300, 200)
            page.mouse.down()
            page.mouse.move(400, 220)
            page.mouse.up()
            turned = until(page, end)
            page.set_viewport_size({"width": 500, "height": 300})
            small = time.monotonic() + SECONDS
            while page.evaluate("[canvas.width, canvas.height]") != [500, 300]:
                assert time.monotonic() < small
            page.evaluate("socket.close()")
            page.wait_for_selector("#note")
            assert "lost" in page.inner_text("#note")
            page.wait_for_selector("#note", state="hidden")
            page.keyboard.press("q")
            for each in (page, old):
                each.wait_for_selector("text=closed")
            assert turned.shape == (400, 640, 3) and not errors
            browser.close()

    shown(visit)
