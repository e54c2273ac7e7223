"""Whatever is not markup is escaped."""

from __future__ import annotations

from subgnn.reports.markup import Markup, breakable, escape, facts, join, section, short, table, tag

from .reading import read


def test_text_is_escaped_once():
    assert tag("p", "<b>", tag("i", "&"), title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;<i>&amp;</i></p>'
    assert escape(escape("<")) == "&lt;"
    assert isinstance(join(["a", Markup("<b/>")]), Markup)


def test_cells_captions_and_facts_are_escaped():
    nasty = "<td>&'\""
    for made in (table(nasty, [nasty], [[nasty, nasty]]), facts([(nasty, nasty)]), section("a", nasty, nasty)):
        assert read(made).text.count(nasty) >= 2
    assert read(breakable("<a>_<b>")).text == "<a>_<b>"


def test_what_no_page_takes_is_replaced():
    assert escape("a\x00b\ud800c\td") == "a\ufffdb\ufffdc\td"


def test_attributes():
    assert tag("line", x1=1.0, x2=-0.01, stroke_width=2.25, class_=None) == '<line x1="1" x2="0" stroke-width="2.2"/>'
    assert short(100.0) == "100"
