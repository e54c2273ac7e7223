"""docs/tuning.md has every search space, pruner and file of a search."""

from __future__ import annotations

import re
import typing

from subgnn.lab.tuning.search_space import space_names
from subgnn.lab.tuning.study import Pruner
from subgnn.lab.tuning.tune import FILES
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "tuning.md").read_text(encoding="utf-8")


def rows(head: str) -> list[str]:
    """The first column of the table with that heading."""
    table = PAGE.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)


def test_spaces():
    assert sorted(rows("space")) == space_names()


def test_pruners():
    assert sorted(rows("pruner")) == sorted(typing.get_args(Pruner))


def test_files():
    assert sorted(rows("file")) == sorted([*FILES.values(), "study.db", "inputs.json"])
