"""The report page in a real Chromium, driven over its debugging pipe: charts, controls, dark mode, no requests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stages.test_page import HOSTILE, hostile_sweep
from tests.unit.test_comparison_fake_sweep import CONVENTIONS, PARAMS, make_run, make_sweep, planted_tokens
from tokenaxis.comparison import Sweep, make
from tokenaxis.comparison.page.plotting import plotly_bytes

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]

#: scrolls to the loss chart, waits until it is drawn, and gives the milliseconds since the page was asked for
DRAWN = """(async () => {
  const place = document.querySelector("#figure-loss .chart");
  place.scrollIntoView({ behavior: "instant" });
  while (!place.dataset.drawn) await new Promise((done) => setTimeout(done, 20));
  return performance.now();
})()"""


class Chromium:
    """One headless browser; the protocol is JSON with a zero byte after each message, on descriptors 3 and 4.

    https://chromedevtools.github.io/devtools-protocol/
    """

    def __init__(self, program: str, profile: Path):
        commands, self.to_browser = os.pipe()
        self.from_browser, answers = os.pipe()
        script = f'exec 3<&{commands} 4>&{answers}; exec "$@"'
        command = ["bash", "-c", script, "bash", program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        environment = {**os.environ, "HOME": str(profile)}
        self.process = subprocess.Popen(
            command, pass_fds=(commands, answers), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self.number, self.rest, self.events = 0, b"", []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            received = os.read(self.from_browser, 1 << 20)
            assert received, "the browser went away"
            self.rest += received
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def close(self) -> None:
        try:
            self.call("Browser.close")
        except (OSError, AssertionError):
            self.process.kill()
        self.process.wait(timeout=20)
        os.close(self.to_browser)
        os.close(self.from_browser)


class Tab:
    """One page in the browser, loaded, with what it logged, threw and requested."""

    def __init__(self, browser: Chromium, file: Path, width: int = 1280, dark: bool = False):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        browser.events.clear()
        self.file = file
        self.call("Page.navigate", url=file.as_uri())
        self.run(
            "new Promise((done) => { if (document.readyState === 'complete') done();"
            " else addEventListener('load', done); }).then(() => null)"
        )

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def after_drawing(self, script: str) -> Any:
        """The value of the body of an async function, once the loss chart is drawn."""
        self.run(DRAWN)
        pause = "const pause = (ms) => new Promise((done) => setTimeout(done, ms));"
        return self.run(f"(async () => {{ {pause} {script} }})()")

    def complaints(self) -> list[str]:
        """Errors and warnings of the page, and requests for anything but the page itself."""
        found = []
        for event in self.browser.events:
            method, params = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                found.append(json.dumps(params)[:500])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("data:", "blob:")) and url != self.file.as_uri():
                    found.append(f"request for {url}")
        return found

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A Chromium, if the machine has one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for name in names if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium on this machine: the page is tested without a browser only")
    chromium = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the fake sweep, with charts."""
    if plotly_bytes() is None:
        pytest.skip("the package plotly is not installed: pages have static figures only")
    folder = tmp_path_factory.mktemp("page")
    make(make_sweep(), PARAMS, folder)
    return folder / "index.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose every text is out to break it."""
    folder = tmp_path_factory.mktemp("hostile")
    make(hostile_sweep(), PARAMS, folder)
    return folder / "index.html"


@pytest.fixture
def tab(browser: Chromium, page: Path) -> Iterator[Tab]:
    """The fake sweep's page, loaded."""
    opened = Tab(browser, page)
    yield opened
    opened.close()


def test_the_page_makes_no_request_and_logs_no_error(tab: Tab) -> None:
    tab.after_drawing(
        """for (const figure of document.querySelectorAll("figure.is-live")) {
          figure.scrollIntoView({ behavior: "instant" });
          while (!figure.querySelector(".chart").dataset.drawn) await pause(20);
        }"""
    )
    assert tab.run("document.querySelectorAll('.chart[data-drawn]').length") == 3
    assert tab.complaints() == []


def test_a_chart_takes_the_place_of_the_static_figure(tab: Tab) -> None:
    names = tab.after_drawing(
        "return Array.from(document.querySelectorAll('#figure-loss .legendtext'), (t) => t.textContent);"
    )
    expected = ("2Kbs", "4Kbs", "8Kbs", "16Kbs", "growing", "resumed_8Kbs", "short_8Kbs", "sparse_4Kbs")
    assert names == [f"gpt_{name}" for name in expected]
    assert tab.run("getComputedStyle(document.querySelector('#figure-loss .static')).display") == "none"


def test_on_paper_the_static_figures_are_back(tab: Tab) -> None:
    tab.run(DRAWN)
    tab.call("Emulation.setEmulatedMedia", media="print")
    shown = "getComputedStyle(document.querySelector('#figure-loss {}')).display"
    assert tab.run(shown.format(".static")) == "block"
    assert tab.run(shown.format(".chart")) == "none"


def test_the_x_axis_turns_to_steps_hours_and_flop(tab: Tab) -> None:
    found = dict(
        tab.after_drawing("""
        const select = document.querySelector("#figure-loss select");
        const chart = document.querySelector("#figure-loss .chart"), found = [];
        for (const option of select.options) {
          select.value = option.value;
          select.dispatchEvent(new Event("change"));
          await pause(100);
          const marks = chart.data.filter((trace) => trace.error_x && trace.name === "gpt_4Kbs")[0];
          found.push([chart.layout.xaxis.title.text, marks.x[0]]);
        }
        return found;""")
    )
    tokens = planted_tokens(2.0, 4000)
    # drawn numbers have five digits; the clock's first second is not a whole step
    assert found["tokens"] == pytest.approx(tokens, rel=1e-4)
    assert found["optimizer steps"] == pytest.approx(tokens / 4000, rel=1e-3)
    assert found["FLOP (hf)"] == pytest.approx(tokens * CONVENTIONS["hf"], rel=1e-4)
    assert found["wall time (hours)"] == pytest.approx((1 + 0.02 * tokens / 4000) / 3600, rel=1e-2)


def test_a_filter_leaves_the_runs_that_match_in_charts_and_tables(tab: Tab) -> None:
    names, rows = tab.after_drawing("""
        const search = document.querySelector("#figure-loss input[type=search]");
        search.value = "8kbs resumed";
        search.dispatchEvent(new Event("input"));
        await pause(200);
        const names = new Set(document.querySelector("#figure-loss .chart").data.map((trace) => trace.name));
        const rows = Array.from(document.querySelectorAll("#targets tbody tr")).filter((row) => !row.hidden);
        return [Array.from(names), rows.map((row) => row.dataset.run)];""")
    assert names == rows == ["gpt_resumed_8Kbs"]


def test_one_run_shows_its_own_stability_with_intervals(tab: Tab) -> None:
    names, bands = tab.after_drawing("""
        const figure = document.querySelector("#figure-stability"), select = figure.querySelector("select");
        figure.scrollIntoView({ behavior: "instant" });
        const chart = figure.querySelector(".chart");
        while (!chart.dataset.drawn) await pause(20);
        select.value = Array.from(select.options).find((option) => option.text.startsWith("gpt_4Kbs")).value;
        select.dispatchEvent(new Event("change"));
        await pause(200);
        return [chart.data.filter((trace) => trace.showlegend !== false).map((trace) => trace.name),
                chart.data.filter((trace) => trace.fill === "toself").length];""")
    assert sorted(names) == [
        "1.40 nats/token",
        "1.60 nats/token",
        "1.80 nats/token",
        "2.00 nats/token",
        "predicted = observed",
    ]
    assert bands == 4


def test_a_header_sorts_its_table_by_value(tab: Tab) -> None:
    first, last, turned, state = tab.run("""(() => {
        const table = document.querySelector("#targets table"), header = table.tHead.rows[0].cells[1];
        const order = () => Array.from(table.tBodies[0].rows, (row) => row.dataset.run);
        header.querySelector("button").click();
        const up = order();
        header.querySelector("button").click();
        return [up[0], up[7], order()[0], header.getAttribute("aria-sort")];
    })()""")
    assert (first, last, turned, state) == ("gpt_2Kbs", "gpt_16Kbs", "gpt_16Kbs", "descending")


def test_hostile_names_are_text_in_charts_too(browser: Chromium, hostile: Path) -> None:
    tab = Tab(browser, hostile)
    if plotly_bytes() is not None:
        names, elements = tab.after_drawing("""
            const names = Array.from(document.querySelectorAll("#figure-loss .legendtext"), (text) => text.textContent);
            return [names, document.querySelectorAll(".chart img, .chart b, .chart a[href^=javascript]").length];""")
        assert HOSTILE[0] in names
        assert elements == 0
    assert tab.complaints() == []
    tab.close()


@pytest.mark.parametrize("dark", [False, True])
def test_dark_mode_turns_page_charts_and_static_figures(browser: Chromium, page: Path, dark: bool) -> None:
    tab = Tab(browser, page, dark=dark)
    paper, ink, label = tab.after_drawing("""
        const chart = document.querySelector("#figure-loss .chart");
        return [getComputedStyle(document.body).backgroundColor, chart.layout.font.color,
                getComputedStyle(document.querySelector("#figure-targets svg text")).fill];""")
    assert paper == ("rgb(15, 20, 25)" if dark else "rgb(255, 255, 255)")
    assert ink == ("#e6edf3" if dark else "#1f2328")
    assert label == ("rgb(230, 237, 243)" if dark else "rgb(31, 35, 40)")
    tab.close()


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_screen_scrolls_tables_and_not_the_page(browser: Chromium, page: Path, width: int) -> None:
    tab = Tab(browser, page, width=width)
    assert tab.after_drawing("return document.documentElement.scrollWidth;") <= width
    tab.close()


def test_a_wide_table_with_hidden_words_does_not_widen_the_page(browser: Chromium, tmp_path: Path) -> None:
    """Words for screen readers are positioned: in a table that scrolls they must scroll with it."""
    targets = tuple(2.4 - 0.1 * n for n in range(12))
    make(Sweep("wide", [make_run(name, targets=targets) for name in "ab"]), PARAMS, tmp_path)
    tab = Tab(browser, tmp_path / "index.html", width=600)
    assert tab.after_drawing("return document.documentElement.scrollWidth;") <= 600
    tab.close()


def test_very_many_runs_keep_their_names_though_the_grey_ones_are_one_line(browser: Chromium, tmp_path: Path) -> None:
    runs = [make_run(f"run{number}", 2000 * 2 ** (number % 4), 1e6, seed=number) for number in range(60)]
    make(Sweep("many", runs), PARAMS, tmp_path)
    tab = Tab(browser, tmp_path / "index.html")
    traces, names, picked = tab.after_drawing("""
        const chart = document.querySelector("#figure-loss .chart"), count = chart.data.length;
        const grey = chart.data.find((trace) => trace.name === "50 other runs");
        const search = document.querySelector("#figure-loss input[type=search]");
        search.value = grey.text[0];
        search.dispatchEvent(new Event("input"));
        await pause(200);
        const shown = new Set(chart.data.flatMap((trace) => trace.text || [trace.name]).filter(Boolean));
        const picked = Array.from(shown).every((name) => name.includes(search.value));
        return [count, new Set(grey.text.filter(Boolean)).size, picked];""")
    assert traces <= 3 + 2 * 10  # three for the grey runs, a line and marks for each coloured one
    assert names == 50
    assert picked
    assert tab.complaints() == []
    tab.close()


def test_two_hundred_runs_can_be_used_within_seconds(browser: Chromium, page: Path, tmp_path: Path) -> None:
    runs = [make_run(f"run{number}", 2000 * 2 ** (number % 4), 3e6, seed=number) for number in range(200)]
    make(Sweep("many", runs), PARAMS, tmp_path)
    tab = Tab(browser, tmp_path / "index.html")
    # 3 s is the aim; 2.1 to 2.6 s was measured on two cores that five other programs shared, without a graphics card
    assert tab.run(DRAWN) < 6000
    tab.close()
