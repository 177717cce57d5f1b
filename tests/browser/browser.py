"""WebKit without a screen: Xvfb and WebKitWebDriver, spoken to as W3C's WebDriver says. Only Python's own modules.

usage: browser.py PAGE PICTURE [--dark] [--width N] [--height N] [--selector CSS]: a small PNG of the page's beginning, or
of an element; so are those of docs/report.md made."""

import argparse
import base64
import collections
import glob
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zlib

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's number, by the standard


def missing():
    """Why there is no browser here, or None."""
    for program in ("Xvfb", "WebKitWebDriver"):
        if not shutil.which(program):
            return f"no {program} (packages xvfb and webkit2gtk-driver)"
    return None if mini_browser() else "no MiniBrowser (package libwebkit2gtk-4.1-0 or 4.0-37)"


def mini_browser():
    """The program that the driver starts, of the newest WebKit."""
    found = sorted(glob.glob("/usr/lib*/*/webkit*gtk-*/MiniBrowser") + glob.glob("/usr/lib*/webkit*gtk-*/MiniBrowser"))
    return found[-1] if found else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pixels(path, most=None):
    """A PNG's rows, or so many of them, each a list of (red, green, blue)."""
    data = pathlib.Path(path).read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    channels = {2: 3, 3: 1, 6: 4}[kind]
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and depth == 8 and data[28] == 0, path
    packed, palette, at = b"", b"", 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        palette = data[at + 8:at + 8 + size] if name == b"PLTE" else palette
        at += size + 12
    raw, stride = zlib.decompress(packed), width * channels
    above, rows = bytearray(stride), []
    for y in range(min(height, most or height)):
        begin = y * (stride + 1)
        line, how = bytearray(raw[begin + 1:begin + 1 + stride]), raw[begin]
        for i in range(stride if how else 0):
            left, up, corner = (line[i - channels], above[i], above[i - channels]) if i >= channels else (0, above[i], 0)
            line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest(left, up, corner))[how]) & 255
        if kind == 3:
            rows.append([tuple(palette[3 * v:3 * v + 3]) for v in line])
        else:
            rows.append([tuple(line[i:i + 3]) for i in range(0, stride, channels)])
        above = line
    return rows


def nearest(left, up, corner):
    """Paeth's: which of the three is nearest to left + up - corner."""
    return min((left, up, corner), key=lambda v: abs(left + up - corner - v))


def chunk(name, data):
    return struct.pack(">I4s", len(data), name) + data + struct.pack(">I", zlib.crc32(name + data))


def write(path, rows):
    """A PNG of 256 colours, the nearest of which all others become: a third of the size."""
    counts = collections.Counter(p for row in rows for p in row)
    kinds = {}  # the most frequent of those that are alike
    for colour, _ in counts.most_common():
        kinds.setdefault(tuple(v >> 4 for v in colour), colour)
    palette = list(kinds.values())[:256]
    number = {c: min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], c))) for c in counts}
    data = b"".join(b"\0" + bytes(number[p] for p in row) for row in rows)
    pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0))
                                   + chunk(b"PLTE", bytes(v for c in palette for v in c)) + chunk(b"IDAT", zlib.compress(data, 9))
                                   + chunk(b"IEND", b""))


class Browser:
    """One window. With `dark`, pages are told that the user prefers that."""

    def __init__(self, dark=False, size=(1280, 2000)):
        self.processes = []
        self.home = tempfile.mkdtemp(prefix="zc-browser-")
        try:
            self._start(dark, size)
        except BaseException:
            self.close()
            raise

    def _start(self, dark, size):
        read, write = os.pipe()
        self._run(["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size[0]}x{size[1] + 200}x24", "-nolisten", "tcp"],
                  os.environ, pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as display:
            number = display.readline().strip()
        if not number:
            raise RuntimeError("Xvfb did not start")
        environment = {**os.environ, "DISPLAY": ":" + number, "HOME": self.home, "GTK_THEME": "Adwaita:dark" if dark else "Adwaita",
                       "XDG_CONFIG_HOME": self.home, "XDG_CACHE_HOME": self.home, "XDG_DATA_HOME": self.home,
                       # Namespaces, which containers refuse; the pages are the tests' own.
                       "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1",
                       # What is composed goes through Mesa's llvmpipe, which crashes now and then.
                       "WEBKIT_DISABLE_COMPOSITING_MODE": "1",
                       "GDK_BACKEND": "x11", "NO_AT_BRIDGE": "1", "LIBGL_ALWAYS_SOFTWARE": "1", "GSETTINGS_BACKEND": "memory"}
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._run(["WebKitWebDriver", f"--port={port}"], environment)
        options = {"binary": mini_browser(), "args": ["--automation"]}
        for _ in range(100):
            try:
                self._call("GET", "/status")
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}})
        self.url += "/session/" + made["sessionId"]
        self._call("POST", "/window/rect", {"x": 0, "y": 0, "width": size[0], "height": size[1]})

    def _run(self, command, environment, **more):
        log = open(os.path.join(self.home, os.path.basename(command[0]) + ".log"), "wb")
        with log:
            self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                   **more))

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise RuntimeError(e.read().decode()) from e

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def js(self, script, *args):
        """What the function's body returns in the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def element(self, selector):
        return self._call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._call("POST", f"/element/{self.element(selector)}/click", {})

    def type(self, selector, text):
        self._call("POST", f"/element/{self.element(selector)}/value", {"text": text})

    def clear(self, selector):
        """As a user does: all is marked (Control and a), and deleted."""
        self.type(selector, "\ue009a\ue000\ue003")

    def frames(self):
        """Waits until what has changed is drawn."""
        script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        self._call("POST", "/execute/async", {"script": script, "args": []})

    def picture(self, path, selector=None):
        """A PNG of the window, or of the part of one element that fits in. WebKit's own pictures of elements lack parts."""
        if selector:
            self.js("scrollBy(0, Math.floor(document.querySelector(arguments[0]).getBoundingClientRect().top))", selector)
        self.frames()
        with open(path, "wb") as out:
            out.write(base64.b64decode(self._call("GET", "/screenshot")))
        if selector:
            left, top, right, bottom = (round(v) for v in self.js(
                "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]",
                selector))
            write(path, [row[left:right] for row in pixels(path, bottom)[top:]])

    def close(self):
        if "/session/" in getattr(self, "url", ""):
            try:
                self._call("DELETE", "")
            except (RuntimeError, OSError):
                pass
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    asked = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    asked.add_argument("page")
    asked.add_argument("picture")
    asked.add_argument("--dark", action="store_true")
    asked.add_argument("--width", type=int, default=1280)
    asked.add_argument("--height", type=int, default=2000)
    asked.add_argument("--selector")
    a = asked.parse_args()
    if missing():
        raise SystemExit(missing())
    with Browser(dark=a.dark, size=(a.width, a.height)) as browser:
        browser.open(pathlib.Path(a.page).resolve().as_uri())
        browser.picture(a.picture, a.selector)
    if not a.selector:
        write(a.picture, pixels(a.picture))


if __name__ == "__main__":
    main()
