"""Pages as a browser shows them: nothing loaded from elsewhere, nothing wrong for those who read otherwise."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import Browser, Page

from tests.ui import browser as browsers
from tests.ui.world import World

pytestmark = pytest.mark.slow

PHONE = {"width": 390, "height": 800}
DESK = {"width": 1280, "height": 900}
# Of each kind one page; what differs by the number of classes in all sizes.
KINDS = [
    *("runs", "leaderboard", "comparisons", "gates", "gate", "search", "metric", "question", "advice", "nothing"),
    *("run of two", "run of four", "run of 35", "run of 200", "run of hostile", "run of clusters"),
    *("run of labels", "run of ranking", "run of regions", "slices", "compared rankings", "history of twelve"),
    *(
        "figures of two",
        "simulator of two",
        "simulator of hostile",
        "comparison of runs",
        "compared",
        "compared hostile",
        "check: worse",
    ),
]


SCREENS_OF_DOCS = Path(__file__).parents[2] / "docs" / "screens"
# Pictures of the documentation: what each shows, in which theme, and how much of the page; one is of a phone.
SCREENS = [
    ("evaluation", "run of four", "light", 900),
    ("evaluation-dark", "run of four", "dark", 900),
    ("simulator", "simulator of two", "light", 820),
    ("comparison", "comparison of runs", "light", 900),
    ("check", "check: worse", "light", 900),
    ("metric", "metric", "light", 620),
    ("leaderboard", "leaderboard", "light", 900),
    ("gate", "gate", "light", 900),
    ("metrics", "metrics", "light", 620),
    ("figures-200", "figures of 200", "light", 1200),
    ("evaluation-phone", "run of four", "light", 1200),
    ("home", "runs", "light", 1400),
    ("history", "history of twelve", "light", 1100),
    ("slices", "slices", "light", 1100),
    ("compared-rankings", "compared rankings", "light", 900),
    ("run-2-classes", "run of two", "light", 1400),
    ("run-35-classes", "run of 35", "light", 1400),
    ("run-35-classes-dark", "run of 35", "dark", 1400),
    ("run-long-names", "run of hostile", "light", 1400),
    ("run-long-names-phone", "run of hostile", "light", 1400),
    ("run-labels", "run of labels", "light", 1400),
    ("run-ranking", "run of ranking", "light", 1400),
    ("run-regions", "run of regions", "light", 1400),
    ("run-clusters", "run of clusters", "light", 1400),
    ("run-200-classes", "run of 200", "light", 1400),
    ("report-print", "35", "light", 2000),
    ("simulator-phone", "simulator of two", "light", 1200),
    ("comparison-dark", "comparison of runs", "dark", 900),
    ("comparisons", "comparisons", "light", 500),
    ("questions", "question", "light", 800),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.opened() as found:
        yield found


class Watched:
    """A page, and what it asked for and complained about."""

    def __init__(self, browser: Browser, world: World, **context: Any) -> None:
        self.world = world
        self.context = browser.new_context(base_url=world.url, **{"viewport": DESK, **context})
        self.page: Page = self.context.new_page()
        # Long, since it is no test of how quick a machine is.
        self.page.set_default_timeout(180_000)
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self._heard(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, kind: str, text: str) -> None:
        # That a page is not there is said by the test itself.
        if kind in ("error", "warning") and "404" not in text:
            self.complaints.append(text)

    def open(self, path: str) -> Page:
        self.page.goto(path)
        return self.page

    def check(self) -> None:
        outside = [one for one in self.asked if not one.startswith((self.world.url, "data:", "blob:"))]
        assert not outside
        assert not self.complaints


@pytest.fixture(scope="module")
def pages(browser: Browser, world: World) -> Iterator[Watched]:
    watched = Watched(browser, world)
    watched.context.add_init_script(path=AXE_FILE_PATH)
    yield watched
    watched.context.close()


def violations(page: Page, *rules: str) -> list[str]:
    """What axe finds, each with the first element; by some of its rules only, where these are named."""
    asked = {"resultTypes": ["violations"], **({"runOnly": [*rules]} if rules else {})}
    found = page.evaluate("(asked) => axe.run(document, asked)", asked)["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


@pytest.mark.parametrize("name", KINDS)
def test_pages_in_both_themes_and_on_a_phone(pages: Watched, world: World, name: str) -> None:
    """Of a theme only the contrast depends; nothing is wider than a phone but what scrolls by itself."""
    page = pages.open(world.pages()[name])
    page.set_viewport_size(DESK)
    for theme, paper, rules in (("light", "255, 255, 255", ()), ("dark", "20, 23, 27", ("color-contrast",))):
        page.emulate_media(color_scheme=theme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == f"rgb({paper})"
        assert violations(page, *rules) == []
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    pages.check()


# Pixels of the smallest text of a figure, which shrinks with the page.
_SMALLEST = """() => Math.min(...[...document.querySelectorAll("svg text")].filter((one) => one.getClientRects().length)
  .map((one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a || 99))"""


@pytest.mark.parametrize(
    "name", ["run of two", "run of four", "run of 200", "run of clusters", "comparison of runs", "history"]
)
def test_pages_are_whole_without_scrolling(pages: Watched, world: World, name: str) -> None:
    """As they are printed and photographed, and all their texts can be read on a phone."""
    pages.page.set_viewport_size(PHONE)
    page = pages.open(world.pages()[name])
    for part in page.locator("[data-part]").all():
        part.locator("figure").first.wait_for(state="attached")
    assert page.evaluate(_SMALLEST) >= 8.9
    page.set_viewport_size(DESK)


def test_names_have_room_on_a_phone(pages: Watched, world: World) -> None:
    """Those of classes have two lines, not one for each word; those of metrics not one for every two letters."""
    pages.page.set_viewport_size(PHONE)
    for path, cells, most in (
        (f"/ui/evaluations/{world.runs['probabilities']}", "#classes tbody th", 60),
        (world.pages()["comparisons"], "tbody td:has(code)", 160),
    ):
        heights = [one.bounding_box() for one in pages.open(path).locator(cells).all()]
        assert heights
        assert max(one["height"] for one in heights if one) < most
    pages.page.set_viewport_size(DESK)


def test_parts_come_behind_the_rest(pages: Watched, world: World) -> None:
    """Figures and the simulator are loaded when they come near, and then the whole page is right too."""
    page = pages.open(world.pages()["run of two"])
    for part in ("#figures", "#simulator"):
        page.locator(part).scroll_into_view_if_needed()
    slider = page.locator("#simulator input[data-of=share]")
    slider.wait_for()
    page.locator("#figures svg.fig").first.wait_for()
    recall, precision = (page.locator(f"#simulator [data-fact={one}] dd") for one in ("caught", "precision"))
    before = recall.inner_text().split("recall")[1], precision.inner_text()
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("#simulator #share").input_value() == "0.0001"
    after = recall.inner_text().split("recall")[1], precision.inner_text()
    assert before[0] == after[0]
    assert before[1] != after[1]
    # Whoever has no mouse moves a setting by pressing a key once, not ten times.
    page.locator("#simulator input[data-of=threshold]").focus()
    page.keyboard.press("ArrowLeft")
    assert float(page.locator("#simulator #threshold").input_value()) < 0.5
    assert violations(page) == []
    pages.check()


@pytest.mark.parametrize(
    "name",
    ["run of two", "run of unkept", "run of four", "run of 200", "run of clusters", "comparison of runs", "history"],
)
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_page_has_its_length_before_its_parts_come(
    pages: Watched, world: World, name: str, size: dict[str, int]
) -> None:
    pages.page.set_viewport_size(size)
    page = pages.open(world.pages()[name])
    before = page.evaluate("document.documentElement.scrollHeight")
    for part in page.locator("[data-part]").all():
        part.scroll_into_view_if_needed()
        part.locator("figure").first.wait_for()
    assert page.evaluate("document.documentElement.scrollHeight") == before
    page.set_viewport_size(DESK)


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_dataset_has_nearly_its_length_before_it_comes(
    browser: Browser, pages: Watched, world: World, size: dict[str, int]
) -> None:
    """What is said of it is as long as its names are; a line or two more moves nothing out of sight."""
    without_script = Watched(browser, world, viewport=size, java_script_enabled=False)
    before = without_script.open("/ui").locator(".set[aria-label^=hartwig]").bounding_box()
    without_script.context.close()
    pages.page.set_viewport_size(size)
    dataset = pages.open("/ui").locator(".set[aria-label^=hartwig]")
    dataset.locator("figure").wait_for()
    after = dataset.bounding_box()
    pages.page.set_viewport_size(DESK)
    assert before is not None
    assert after is not None
    assert before["height"] == pytest.approx(after["height"], abs=50)


def test_the_simulator_says_what_the_service_does_and_keeps_it_in_the_address(pages: Watched, world: World) -> None:
    """Numbers of the script are those of the page that is asked for with the same address, which has every setting."""
    path = world.pages()["simulator of two"]
    page = pages.open(path)
    for name, value in (("share", "0.003"), ("threshold", "0.72"), ("cost_fn", "35"), ("cost_fp", "2")):
        page.locator(f"#{name}").fill(value)
    page.locator("#cost_fp").blur()
    moved = page.locator(".five").inner_text(), page.locator(".say").inner_text()
    address = page.url
    assert "share=0.003" in address
    assert "threshold=0.72" in address
    asked = httpx.get(address).text
    plain = pages.context.new_page()
    plain.route("**/ui.js*", lambda route: route.abort())
    plain.goto(address)
    assert (plain.locator(".five").inner_text(), plain.locator(".say").inner_text()) == moved
    # What is nearly 1 reads so.
    source = {"kind": "confusion_matrix", "matrix": [[2 * 10**9, 1], [1, 10**9]]}
    body = {"input": source, "model": {"name": "m"}, "dataset": {"name": "nearly all"}}
    nearly = f"{world.url}/ui/evaluations/{httpx.post(f'{world.url}/v1/evaluations', json=body).json()['id']}/simulator"
    plain.goto(nearly)
    pages.open(nearly.removeprefix(world.url))
    assert plain.locator(".five").inner_text() == page.locator(".five").inner_text()
    plain.close()
    caption = page.locator("[data-chart=shares] figcaption span")
    assert caption.inner_text() == "bands: 95\u00a0% limits; dashed: this data"
    # A share above a half is not on the axis.
    pages.open(f"{nearly.removeprefix(world.url)}?class=0")
    assert caption.inner_text() == "bands: 95\u00a0% limits"
    pages.open(path)
    assert 'value="0.72"' in asked
    drawn = page.evaluate(
        "() => { const f = document.getElementById('share'); const start = performance.now(); f.value = 0.01; "
        "f.dispatchEvent(new Event('input', { bubbles: true })); return performance.now() - start; }"
    )
    assert drawn < 100
    pages.check()


def test_tables_sort_by_keyboard(pages: Watched, world: World) -> None:
    page = pages.open(world.pages()["run of 200"])
    head = page.locator("#classes th", has_text="Recall").first
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    cells = page.locator("#classes table").first.locator("tbody tr td:nth-child(3)").all_inner_texts()
    values = [float(one) for one in cells]
    assert values == sorted(values, reverse=True)
    assert len(values) == 40
    # A bound is a number too.
    matrix = [[10**9, 1, 0], [2, 2, 0], [0, 1, 4]]
    body = {
        "input": {"kind": "confusion_matrix", "matrix": matrix},
        "model": {"name": "m"},
        "dataset": {"name": "bounds"},
    }
    kept = httpx.post(f"{world.url}/v1/evaluations", json=body).json()["id"]
    page = pages.open(f"/ui/evaluations/{kept}")
    page.locator("#classes th", has_text="Recall").first.get_by_role("button").click()
    assert page.locator("#classes tbody tr td:nth-child(3)").all_inner_texts() == [">0.99999", "0.80", "0.50"]
    pages.check()


def test_everything_is_reached_by_keyboard(pages: Watched, world: World) -> None:
    """The skip link comes first and leads to the content; every control has its turn and shows it."""
    page = pages.open(world.pages()["leaderboard"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "() => { const e = document.activeElement; const s = getComputedStyle(e); "
            "return e === document.body ? null : [e.tagName, e.textContent.trim().slice(0, 40), e.name || '', "
            "s.outlineStyle !== 'none' || s.boxShadow !== 'none'] }"
        )
        if here is None:
            break
        assert here[3], f"the focus is not seen on {here}"
        seen.add((here[0], here[2] or here[1]))
    assert {("A", "Gates"), ("INPUT", "dataset"), ("SELECT", "metric"), ("BUTTON", "Show"), ("A", "tumor-rf 7")} <= seen


def tab_to(page: Page, selector: str) -> None:
    """Go to an element by the tabulator alone."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("(one) => document.activeElement.matches(one)", selector):
            return
    raise AssertionError(f"{selector} is not reached by the keyboard")


def test_the_best_model_a_comparison_and_a_failed_gate_are_found_by_keyboard(pages: Watched, world: World) -> None:
    """From home: the best run, it against the champion, and why the gate failed the champion."""
    page = pages.open("/ui?dataset=hartwig")
    tab_to(page, "#leaderboard td a, #leaderboard th a")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/evaluations/*")
    assert "tumor-gbm 2" in page.locator("h1").inner_text()
    page.go_back()
    for _ in range(2):
        tab_to(page, "#runs input[type=checkbox]:not(:checked)")
        page.keyboard.press("Space")
    tab_to(page, "#runs form button:not(.filters button)")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/compare?*")
    assert "tumor-gbm 2 against tumor-rf 7" in page.locator("h1").inner_text()
    tab_to(page, "nav a[href$=gates]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/gates")
    tab_to(page, "main a[href$='gates/promotion']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/gates/promotion")
    tab_to(page, "#checks a[href*='/checks/']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/checks/*")
    assert "3 of 6 rules fail" in page.locator("main").inner_text()
    pages.check()


def test_the_theme_is_kept(pages: Watched, world: World) -> None:
    page = pages.open("/ui")
    page.emulate_media(color_scheme="light")
    button = page.get_by_role("button", name="Dark theme")
    button.click()
    page = pages.open("/ui/gates")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Light theme").click()
    page.evaluate("localStorage.clear()")
    pages.check()


def test_without_scripts_everything_is_read(browser: Browser, world: World) -> None:
    watched = Watched(browser, world, java_script_enabled=False)
    page = watched.open(world.pages()["run of four"])
    page.get_by_role("link", name="Other shares, thresholds and costs").click()
    assert page.locator("[data-rows] tbody tr").count() == 7
    page.locator("select[name=class]").select_option("A")
    page.get_by_role("button", name="Show").click()
    assert "What if class A were rarer" in page.locator("h2").first.inner_text()
    watched.context.close()


@pytest.mark.parametrize("name", ["35", "probabilities"])
def test_reports_are_printed_on_a4(browser: Browser, world: World, tmp_path: Any, name: str) -> None:
    """The report opens as a file with no network, asks for nothing, and no table or figure is cut at the edge."""
    text = httpx.get(f"{world.url}/v1/evaluations/{world.runs[name]}/report", timeout=60).text
    file = tmp_path / "report.html"
    file.write_text(text)
    context = browser.new_context(offline=True, viewport={"width": 688, "height": 900})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert [one for one in asked if not one.startswith(("file:", "data:"))] == []
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 688
    printed = page.pdf(prefer_css_page_size=True)
    boxes = re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", printed)
    assert 2 <= len(boxes) < 20
    assert {(round(float(width)), round(float(height))) for width, height in boxes} == {(595, 842)}
    context.close()


@pytest.mark.parametrize(("name", "path", "theme", "height"), SCREENS)
def test_the_pictures_of_the_documentation(
    pages: Watched, world: World, tmp_path: Path, name: str, path: str, theme: Any, height: int
) -> None:
    """As they are committed in docs/screens, which `make screens` makes anew."""
    folder = Path(browsers.KEPT_IN or tmp_path)
    page = pages.open(world.pages().get(path) or f"/v1/evaluations/{world.runs[path]}/report")
    width = {"phone": PHONE["width"], "print": 688}.get(name.rpartition("-")[2], 1120)
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=theme, media="print" if name.endswith("print") else "screen")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=folder / f"{name}.png", animations="disabled")
    made = (folder / f"{name}.png").read_bytes()
    assert made.startswith(b"\x89PNG")
    # Width and height stand in the first chunk.
    assert struct.unpack(">II", made[16:24]) == (width, height)
    committed = SCREENS_OF_DOCS / f"{name}.png"
    assert struct.unpack(">II", committed.read_bytes()[16:24]) == (width, height)


def test_docs_load_nothing_from_elsewhere(browser: Browser, world: World) -> None:
    watched = Watched(browser, world)
    page = watched.open("/docs")
    page.locator(".opblock").first.wait_for()
    assert re.search("Prevail", page.title())
    watched.check()
    watched.context.close()
