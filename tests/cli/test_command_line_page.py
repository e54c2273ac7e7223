"""docs/command_line.md has a section for every verb, and names no option that does not exist."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from subgnn.cli.app import app
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")


def verbs(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All commands that do something, by what one types."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from verbs(inner, f"{path} {name}")


ROOT_COMMAND = typer.main.get_command(app)
VERBS = dict(verbs(ROOT_COMMAND, "subgnn"))
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}


def options(*commands: Any) -> set[str]:
    found = {"--help"}
    for command in commands:
        for parameter in command.params:
            found |= {option.strip() for option in (*parameter.opts, *parameter.secondary_opts)}
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_verb_has_a_section_and_a_place_in_the_overview(verb):
    assert verb in list(SECTIONS)
    assert f"(#{verb.replace(' ', '-')})" in PAGE


@pytest.mark.parametrize("title", SECTIONS)
def test_options_exist(title):
    prose = re.sub(r"^```console$.*?^```$", "", SECTIONS[title], flags=re.DOTALL | re.MULTILINE)  # that is run
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", prose))
    known = options(ROOT_COMMAND, VERBS[title]) if title in VERBS else options(ROOT_COMMAND, *VERBS.values())
    assert named <= known, sorted(named - known)


def test_no_section_is_of_a_verb_that_is_gone():
    assert {title for title in SECTIONS if title.startswith("subgnn ")} == set(VERBS)
