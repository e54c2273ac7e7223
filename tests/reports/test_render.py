"""Text from data stays text, whatever it holds."""

from __future__ import annotations

from subgnn.reports.render import breakable, coordinate, render, templates

from .reading import drawn, read

NASTY = "<td>&'\""


def test_text_is_escaped_once():
    for made in (
        drawn("parts.html", "table", NASTY, [NASTY], [[NASTY, NASTY]]),
        drawn("parts.html", "facts", [(NASTY, NASTY)]),
        drawn("parts.html", "tiles", [(NASTY, NASTY, NASTY)]),
    ):
        assert read(made).text.count(NASTY) >= 2
    assert read(breakable("<a>_<b>")).text == "<a>_<b>"


def test_all_templates_but_markdown_escape():
    for name in templates().list_templates():
        if not name.endswith(".css"):
            assert templates().autoescape(name) == (not name.endswith(".md"))


def test_characters_that_no_page_takes_are_replaced():
    values = {"dataset": "a\x00b\ud800c\td", "findings": [], "title": "", "settings": "", "header": [], "rows": []}
    assert render("quick.md", **values, margin="", level="").startswith("# A quick look at a\ufffdb\ufffdc\td\n")


def test_a_bar_in_a_cell_of_markdown_is_escaped():
    values = {"dataset": "", "findings": [], "title": "", "settings": "", "header": ["a|b"], "rows": [["c|d"]]}
    assert "| c\\|d |" in render("quick.md", **values, margin="", level="")


def test_coordinates_have_one_decimal():
    assert [coordinate(v) for v in (1.0, -0.01, 2.25, 100.0)] == ["1", "0", "2.2", "100"]
