"""Text from data stays text, whatever it holds."""

from subgnn.render import breakable, markdown_cells, render, templates

from .reading import drawn, read

NASTY = "<td>&'\""


def test_text_is_escaped_once():
    for made in (
        drawn("parts.html", "table", NASTY, [NASTY], [[NASTY, NASTY]]),
        drawn("parts.html", "facts", [(NASTY, NASTY)]),
        drawn("parts.html", "tile", NASTY, NASTY, NASTY),
    ):
        assert read(made).text.count(NASTY) >= 2
    assert read(breakable("<a>_<b>")).text == "<a>_<b>"


def test_all_templates_but_markdown_escape():
    for name in templates("subgnn.lab").list_templates():
        if not name.endswith(".css"):
            assert templates("subgnn.lab").autoescape(name) == (not name.endswith(".md"))


def test_characters_that_no_page_takes_are_replaced():
    made = render("page.html", title="a\x00b\ud800c\td", lead="", contents=[])
    assert "<title>a\ufffdb\ufffdc\td</title>" in made


def test_a_bar_in_a_cell_of_markdown_is_escaped():
    assert markdown_cells(["a", "c|d"]) == "| a | c\\|d |"
