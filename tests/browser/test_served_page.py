"""The page, in a browser."""

import csv
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from subgnn.serve.app import create_app
from subgnn.serve.limits import Limits
from subgnn.serve.runs import open_runs
from subgnn.serve.server import bind_socket
from tests.serve.examples import NAMES, run_folder

from .tabs import WAIT, Tab

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api")
PERCENT = re.compile(r"([\d.]+) %")


@contextmanager
def serving(*runs: str) -> Iterator[str]:
    """A server in a thread of this process, which is there sooner than one of its own; its address."""
    listening = bind_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create_app(open_runs(list(runs), limits=Limits())), log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(f"small={run_folder()}", f"value={run_folder('regression')}") as found:
        yield found


class Page(Tab):
    """What a person does and sees."""

    def __init__(self, browser, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        super().__init__(browser, width=width, scheme=scheme)
        self.url = address

    def open(self, state: str = "") -> None:
        self.page.goto("about:blank")
        self.page.goto(self.url + state)
        self.page.wait_for_selector("body[data-ready]")

    def pick(self, text: str, name: str) -> None:
        self.page.fill("#search", text)
        self.page.wait_for_selector(f"#options li:has-text('{name}')")
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(f"#picked li:has-text('{name}')")

    def settle(self) -> None:
        """Wait until all answers to the latest question are there."""
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_selector(".why[aria-busy='false']")

    @property
    def picked(self) -> list[str]:
        return [text.removesuffix("\u2715").strip() for text in self.page.locator("#picked li").all_inner_texts()]

    @property
    def probabilities(self) -> dict[str, float]:
        rows = self.page.locator("#classes [role=radio]").all()
        return {row.get_attribute("data-class"): float(PERCENT.search(row.inner_text())[1]) for row in rows}


@pytest.fixture
def page(browser, address) -> Iterator[Page]:
    found = Page(browser, address)
    yield found
    found.close()


def test_pick_predict_remove_and_reload(page):
    page.open()
    assert page.page.locator(".first").is_visible()
    assert page.page.locator(".why").is_hidden()
    page.page.click("text=About this run")
    assert "cliques" in page.page.inner_text("#about")
    page.pick("gene1", "GENE1")
    page.pick("hla", "HLA-A")
    page.pick("Ö-s", "Ö-SMA")
    page.settle()
    assert page.picked == ["GENE1", "HLA-A", "Ö-SMA"]
    before = page.probabilities
    assert set(before) == {"clique0", "clique1", "clique2"}
    assert sum(before.values()) == pytest.approx(100, abs=0.3)
    assert page.page.inner_text("#label") == max(before, key=before.get)
    assert page.page.locator("#by-node li").count() == 3
    assert page.page.locator("#by-channel li.channel").count() == 3
    assert page.page.locator("#similar tr").count() == 10
    assert "3 nodes of the subgraph in 2 components" in page.page.get_attribute("#picture", "aria-label")
    assert page.page.locator("#picture canvas").count() > 0

    page.page.click("#picked button[aria-label='Remove HLA-A']")
    playwright.expect(page.page.locator("#by-node li")).to_have_count(2, timeout=WAIT)
    page.settle()
    after = page.probabilities
    assert page.picked == ["GENE1", "Ö-SMA"]
    assert after != before
    shown = page.page.locator("#classes [data-class=clique0] .delta").inner_text()
    moved = round(after["clique0"] - before["clique0"], 1)
    assert float(re.sub("[^-.0-9]", "", shown.replace("\u2212", "-").split(" ")[0]) or 0) == pytest.approx(
        moved, abs=0.11
    )
    assert "Prediction:" in page.page.inner_text("#status")
    assert page.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Remove Ö-SMA"

    address = page.page.url
    assert "nodes=1,23" in address
    page.open(address.removeprefix(page.url))
    page.settle()
    assert page.picked == ["GENE1", "Ö-SMA"]
    assert page.probabilities == after
    page.page.go_back()
    page.page.goto(address.replace("nodes=1,23", "nodes=0"))
    page.page.wait_for_selector("#picked li:has-text('GENE0')")
    page.settle()


def test_paste_a_list_add_a_neighbour_and_choose_a_class(page):
    page.open()
    page.page.click("text=Paste a list")
    page.page.fill("#pasted", "GENE3, gene4\n#5;nobody <b>x</b>")
    page.page.click("text=Add them")
    page.page.wait_for_selector("#picked li:has-text('GENE5')")
    page.settle()
    assert page.picked == ["GENE3", "GENE4", "GENE5"]
    assert page.page.inner_text("#not-understood") == "2 not known: nobody, <b>x</b>"
    page.page.click("text=Neighbours to add")
    page.page.click("#neighbours button >> nth=0")
    playwright.expect(page.page.locator("#picked li")).to_have_count(4, timeout=WAIT)
    page.settle()
    assert page.picked[3] in NAMES
    chosen = page.page.locator("#classes [aria-checked=true]")
    first = chosen.get_attribute("data-class")
    chosen.focus()
    page.page.keyboard.press("ArrowDown")
    assert chosen.get_attribute("data-class") != first
    assert page.page.inner_text("#why-class") == chosen.get_attribute("data-class")
    assert f"class={chosen.get_attribute('data-class')}" in page.page.url
    page.page.click("#clear")
    page.page.wait_for_selector(".first:visible")
    assert page.page.evaluate("document.activeElement.id") == "search"


def test_a_suggested_node_is_added_by_a_click(page):
    page.open("#run=small&nodes=0,1,2")
    page.settle()
    rows = page.page.locator("#suggestions tr")
    playwright.expect(rows).to_have_count(10, timeout=WAIT)
    first = rows.nth(0).locator("td >> nth=0").inner_text()
    chances = [float(PERCENT.search(row.inner_text())[1]) for row in rows.all()]
    assert chances == sorted(chances, reverse=True)
    assert "lost a fifth" in page.page.inner_text("#suggest-hint")
    rows.nth(0).locator("button").click()
    page.page.wait_for_selector(f"#picked li:has-text('{first}')")
    playwright.expect(page.page.locator(f"#suggestions tr:has(button[aria-label='Add {first}'])")).to_have_count(
        0, timeout=WAIT
    )
    page.settle()
    assert page.picked == ["GENE0", "GENE1", "GENE2", first]
    assert page.page.evaluate("document.activeElement.closest('#suggestions') !== null")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it(browser, address, scheme):
    narrow = Page(browser, address, width=390, scheme=scheme)
    narrow.open()
    assert narrow.out_of_reach == []
    boxes = [narrow.page.locator(f".panel.{name}").bounding_box() for name in ("nodes", "first", "upload")]
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    narrow.open("#nodes=0,1,9,22")
    narrow.settle()
    assert narrow.out_of_reach == []
    panels = ("nodes", "says", "where", "why", "near", "upload")
    boxes = [narrow.page.locator(f".panel.{name}").bounding_box() for name in panels]
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    assert all(box["width"] > 340 for box in boxes)
    shown = [box.bounding_box() for box in narrow.page.locator("#similar button").all()]
    assert len(shown) == 10
    assert all(box["x"] + box["width"] <= 390 for box in shown)
    narrow.close()


def test_errors_of_the_server_are_shown(page):
    page.open("#nodes=0,1")
    page.settle()
    page.page.route("**/predict", lambda route: route.fulfill(status=503, json={"error": "too busy", "hint": "later"}))
    page.pick("gene7", "GENE7")
    page.page.wait_for_selector("#problem:visible")
    assert page.page.inner_text("#problem") == "too busy; later"
    page.settle()
    page.complaints[:] = [text for text in page.complaints if "503" not in text]


def test_a_token_is_asked_for(page):
    page.page.route(
        "**/api/runs",
        lambda route: (
            route.continue_()
            if route.request.headers.get("authorization") == "Bearer secret"
            else route.fulfill(status=401, json={"error": "no token"})
        ),
    )
    page.page.goto(page.url)
    page.page.wait_for_selector("#token-dialog[open]")
    page.page.fill("#token", "secret")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("body[data-ready]")
    page.complaints[:] = [text for text in page.complaints if "401" not in text]


def test_a_table_comes_back_with_its_predictions(page, tmp_path):
    page.open()
    given = tmp_path / "my sets.csv"
    given.write_text('set,genes,remark\n"a, <b>b</b>",GENE0 GENE1 GENE2,-1.5\nsecond,GENE9 HLA-A NOBODY,"=1+1"\n')
    page.page.set_input_files("#file", given)
    assert not page.page.is_checked("#drop")  # unknown names are refused by default, as everywhere
    page.page.check("#drop")
    page.page.click("#upload-form button[type=submit]")
    page.page.wait_for_selector("#uploaded tbody tr")
    rows = [line.locator("td").all_inner_texts() for line in page.page.locator("#uploaded tbody tr").all()]
    assert len(rows) == 2
    assert "a, <b>b</b>" in rows[0]
    assert "1 node is not in the graph and left out: NOBODY" in page.page.inner_text("#upload-notes")
    name, content = page.download("#upload-save")
    assert name == "my_sets_predictions.csv"
    table = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert list(table[0])[:3] == ["name", "label", "probability"]
    assert [row["name"] for row in table] == ["a, <b>b</b>", "second"]
    assert [row["remark"] for row in table] == ["-1.5", "'=1+1"]
    assert table[1]["dropped"] == "NOBODY"
    page.open("#nodes=0,1,2")
    page.settle()
    assert table[0]["label"] == page.page.inner_text("#label")
    assert {name: round(100 * float(table[0][name]), 1) for name in page.probabilities} == page.probabilities
