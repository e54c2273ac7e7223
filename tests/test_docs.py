"""The documentation is true: its examples run, its tables are complete, its links lead somewhere."""

import filecmp
import importlib.util
import re
import runpy
import shutil
from pathlib import Path

import pytest

import subgnn
from tests.pages import ROOT, Block, Session, blocks

DOCS = ROOT / "docs"
RUN = [
    f"{name}.md" for name in ["quickstart", "concepts", "python", "command_line", "settings", "patients", "reproduce"]
]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
README_BLOCKS = [block for block in blocks(ROOT / "README.md") if block.language == "python"]


@pytest.mark.parametrize("block", README_BLOCKS, ids=lambda block: block.where)
def test_readme_python(block: Block, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(block.text, block.where, "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_page_runs_as_it_stands(name, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUBGNN_CACHE", str(tmp_path / "cache"))
    session = Session()
    for block in blocks(DOCS / name):
        session.run(block)


@pytest.mark.parametrize("name", RUN)
def test_every_prompt_of_a_page_is_run(name):
    for block in blocks(DOCS / name):
        assert block.language == "console" or not re.search(r"^\$ ", block.text, re.MULTILINE), block.where


def test_a_wrong_example_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = Session()
    session.run(Block("console", "$ printf 'a 1\\n'\na ...\n", "here"))
    with pytest.raises(AssertionError, match="--- printed\na 1"):
        session.run(Block("console", "$ printf 'a 1\\n'\na 2\n", "here"))
    with pytest.raises(AssertionError, match="exit 2"):
        session.run(Block("console", "$ subgnn train nowhere --out run\n...\n", "here"))
    session = Session()
    session.run(Block("console", "$ subgnn train nowhere --out run\n...\n$ echo $?\n2\n", "here"))
    session.run(Block("python", "print(1 + 1)\n", "here"))
    with pytest.raises(AssertionError, match="--- the page\n3"):
        session.run(Block("output", "3\n", "here"))


def test_the_toy_tables_are_what_their_script_writes(tmp_path):
    runpy.run_path(str(ROOT / "examples" / "toy_tables.py"))["write_tables"](tmp_path)
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.csv")]
    assert len(written) == 4
    for path in written:
        assert filecmp.cmp(tmp_path / path, ROOT / "examples" / path, shallow=False), path


def slugs(page: Path) -> set[str]:
    """What headings are called in links."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        there = page if not path else page.parent / path
        assert there.exists(), target
        assert not heading or heading in slugs(there), target


def test_every_page_is_in_the_index_and_in_the_menu():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in DOCS.glob("*.md")]
    for page in pages:
        assert page == "README.md" or f"({page})" in index, page
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:[\w ]+: )?(\w+\.md)$", menu, re.MULTILINE)
    others = ["CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "options.md", "reference.md"]
    assert sorted(listed) == sorted([*pages, *others])


def test_every_public_name_is_on_the_page():
    shown = re.findall(r"`subgnn\.([A-Za-z_]+)`", (DOCS / "python.md").read_text(encoding="utf-8"))
    assert set(subgnn.__all__) <= set(shown)
    for name in shown:
        assert name in subgnn.__all__ or importlib.util.find_spec(f"subgnn.{name}"), name
