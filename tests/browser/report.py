#!/usr/bin/env python3
"""usage: report.py ZC SOURCE_DIR WRITER PICTURES: the page of zc report in a browser, light and dark: what its pictures
and its table show, that names of models do nothing, and that nothing is loaded. Leaves pictures in the folder PICTURES."""

import http.server
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from browser import Browser, missing, pixels

TIMES = """zc-bench 1
model 00
device abacus
threads 3
concurrency 1
input f32[4] x
run 2.0
run 4.0
run 3.0
peaks 1000000000 4000000000
step 0 MatMul first/product
us 100 300 200
work 1000 1000 400000
step 1 Add first/sum
us 50
work 4000 0 1000
step 2 MatMul second/product
us 1000
work 9000 1000 2000000
step 3 Softmax second/weights
us 7
work 100 100 -1
"""
EVIL = "</script><script>window.owned=1</script>\"'><img/src=x/onerror=window.owned=2><svg/onload=window.owned=3>"
LIGHT, DARK = (252, 252, 251), (26, 26, 25)
ROWS = "Array.from(document.querySelectorAll('table.search tbody tr'))"


def shown(browser):
    """The numbers of the steps that can be seen, in their order."""
    return browser.js(f"return {ROWS}.filter((r) => r.offsetHeight > 0).map((r) => r.cells[0].textContent)")


def click_head(browser, title):
    browser.js("""for (const b of document.querySelectorAll("table.search th button"))
        if (b.textContent === arguments[0]) b.click()""", title)
    return shown(browser)


def is_equal(what, got, need):
    if got != need:
        raise SystemExit(f"FAIL {what}: got {got}, need {need}")


def check_search(browser):
    is_equal("rows", shown(browser), ["0", "1", "2", "3"])
    for text, need in (("product", ["0", "2"]), ("SECOND matmul", ["2"]), ("nothing like it", [])):
        browser.clear("input[type=search]")
        browser.type("input[type=search]", text)
        is_equal(f"search for '{text}'", shown(browser), need)
    browser.clear("input[type=search]")
    is_equal("rows without a search", shown(browser), ["0", "1", "2", "3"])


def check_sort(browser):
    is_equal("longest first", click_head(browser, "µs"), ["2", "0", "1", "3"])
    is_equal("longest last", click_head(browser, "µs"), ["3", "1", "0", "2"])
    is_equal("by operation", click_head(browser, "operation"), ["1", "0", "2", "3"])
    is_equal("not counted comes last", click_head(browser, "GFLOP/s")[-1], "3")
    is_equal("its mark", browser.js("return document.querySelectorAll('th[aria-sort=descending]').length"), 1)
    is_equal("as before", click_head(browser, "step")[::-1], ["0", "1", "2", "3"])


# Everything that is drawn of an SVG lies within its plot, where it has one.
INSIDE = """
const svg = document.querySelector(arguments[0]), plot = svg.querySelector(".plot").getBBox(), out = [];
const is_inside = (x, y) => x >= plot.x - 0.5 && x <= plot.x + plot.width + 0.5 && y >= plot.y - 0.5 && y <= plot.y + plot.height + 0.5;
for (const path of svg.querySelectorAll("path:not(.grid)"))
    for (let i = 0; i <= 20; i++) {
        const p = path.getPointAtLength(path.getTotalLength() * i / 20);
        out.push(is_inside(p.x, p.y));
    }
for (const c of svg.querySelectorAll("circle")) out.push(is_inside(c.cx.baseVal.value, c.cy.baseVal.value));
return [out.length, out.every(Boolean)];
"""


def check_pictures(browser, memory):
    for name, points in (("runs", 42), ("roofline", 24), ("memory", 21)) if memory else (("runs", 42), ("roofline", 24)):
        got, inside = browser.js(INSIDE, f"svg.{name}")
        is_equal(f"{name} inside of the plot", inside, True)
        is_equal(f"{name} has points", got >= points, True)
    wide = browser.js("""return Array.from(document.querySelectorAll("svg:not(.key)"),
        (s) => s.getBoundingClientRect().width > 600 && s.getBoundingClientRect().height > 50)""")
    is_equal("pictures have a size", len(wide) >= 3 and all(wide), True)


def check_timeline(browser):
    bars = browser.js("""return Array.from(document.querySelectorAll("svg.timeline rect:not(.plot)"),
        (r) => [r.x.baseVal.value, r.width.baseVal.value])""")
    is_equal("bars", len(bars), 4)
    for before, behind in zip(bars, bars[1:]):
        is_equal("bars follow each other", abs(before[0] + before[1] - behind[0]) < 0.02, True)
    is_equal("lengths", [round(b[1] / bars[1][1], 1) for b in bars], [4.0, 1.0, 20.0, 0.1])


def check_colours(browser, dark, folder):
    """Of the page by its style and by its picture, and of the timeline's longest operation."""
    need = DARK if dark else LIGHT
    is_equal("background", browser.js("return getComputedStyle(document.body).backgroundColor"), "rgb(%d, %d, %d)" % need)
    name = "dark" if dark else "light"
    is_equal("background that is drawn", pixels(folder / f"page-{name}.png", 9)[8][8], need)  # the window's corner is round
    seen = {p for row in pixels(folder / f"timeline-{name}.png") for p in row}
    fill = browser.js("""const s = getComputedStyle(document.querySelector("svg.timeline rect.c0"));
        return [s.fill.match(/\\d+/g).map(Number), Number(s.fillOpacity)]""")
    mixed = [round(c * fill[1] + b * (1 - fill[1])) for c, b in zip(fill[0], need)]
    near = [p for p in seen if all(abs(a - b) <= 2 for a, b in zip(p, mixed))]
    is_equal(f"the longest operation's colour {mixed} is drawn", bool(near), True)


def check_light_and_dark(page, folder):
    for dark in (False, True):
        with Browser(dark=dark) as browser:
            browser.open(page.as_uri())
            browser.picture(folder / f"page-{'dark' if dark else 'light'}.png")
            browser.picture(folder / f"timeline-{'dark' if dark else 'light'}.png", "svg.timeline")
            check_colours(browser, dark, folder)
            check_pictures(browser, memory=False)
            check_timeline(browser)
            check_search(browser)
            check_sort(browser)


def check_hostile(browser, page):
    browser.open(page.as_uri())
    is_equal("elements", browser.js("""return [document.images.length, document.scripts.length,
        document.querySelectorAll("[onerror], [onload], [onclick], iframe, object, embed, link").length]"""), [0, 1, 0])
    is_equal("the name is text", browser.js("return document.body.textContent.includes(arguments[0])", EVIL), True)
    # What would get in after all does not run either.
    browser.js("""document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.owned=4'>");
        const s = document.createElement("script"); s.textContent = "window.owned=5"; document.body.append(s)""")
    browser.frames()
    is_equal("scripts from names", browser.js("return String(window.owned)"), "undefined")
    is_equal("search still works", len(shown(browser)) > 0, True)


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, page):
        self.asked, server = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                self.send_response(200 if self.path == "/page.html" else 404)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                if self.path == "/page.html":
                    self.wfile.write(page.read_bytes())

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)


def requests_of(browser, page):
    """What the browser asks for when it opens the page."""
    with Server(page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{server.server_port}/page.html")
        browser.frames()
        resources = browser.js("return performance.getEntriesByType('resource').map((e) => e.name)")
        server.shutdown()
        return server.asked, resources


def check_network(browser, page):
    is_equal("requests", requests_of(browser, page), (["/page.html"], []))


def check_the_check(browser, page):
    """The same names do run and load where nothing is escaped and no policy holds."""
    text = page.read_text()
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&")):
        text = text.replace(entity, character)
    bare = page.with_name("bare.html")
    bare.write_text(text.replace("Content-Security-Policy", "no-policy"))
    asked, _ = requests_of(browser, bare)
    is_equal("images load where they may", any("/x" in path for path in asked), True)
    is_equal("scripts run where they may", browser.js("return String(window.owned)") != "undefined", True)


def make_pages(zc, source, writer, folder):
    environment = {**os.environ, "ZC_CACHE_DIR": str(folder / "cache")}

    def run(*command):
        subprocess.run([str(c) for c in command], check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)

    (folder / "made.times").write_text(TIMES)
    run(zc, "report", "made.times", "-o", "made.html")
    model = source / "models/digits/digits.onnx"
    run(zc, "compile", model, "-o", "digits.plan", "-q")
    run(zc, "compile", model, "-o", "plain.plan", "-q", "--skip-pass", "all")
    run(zc, "report", "digits.plan", "plain.plan", "-o", "digits.html", "--seconds", "0.2", "--dim", "batch=2", "--model", model)
    (folder / "forms.txt").write_text(f"form hostile\nopset 17\nin a 1 4\nout y 1 *\nnode Softmax a b name={EVIL}\n"
                                      f"node Softmax b y name={EVIL}\n")
    run(writer, "forms.txt", ".")
    run(zc, "compile", "hostile.onnx", "-o", "hostile.plan", "-q")
    run(zc, "report", "hostile.plan", "-o", "hostile.html", "--seconds", "0", "--no-peaks", "--model", "hostile.onnx")


def check_pages(folder, pictures):
    check_light_and_dark(folder / "made.html", pictures)
    with Browser() as browser:
        check_network(browser, folder / "made.html")
        check_network(browser, folder / "hostile.html")
        check_the_check(browser, folder / "hostile.html")
        check_hostile(browser, folder / "hostile.html")
        browser.open((folder / "digits.html").as_uri())
        check_pictures(browser, memory=True)
        browser.picture(pictures / "digits.png")
        browser.picture(pictures / "memory.png", "svg.memory")


def main():
    zc, source, writer, pictures = (pathlib.Path(a).resolve() for a in sys.argv[1:5])
    why = missing()
    if why:
        print("skipped:", why)
        return 77
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_pages(zc, source, writer, folder)
        check_pages(folder, pictures)
    print("ok; pictures in", os.path.relpath(pictures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
