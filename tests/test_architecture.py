"""Packages import in one direction: docs/architecture.md has their order."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PAGE = Path(__file__).parents[1] / "docs/architecture.md"


@cache
def order() -> list[str]:
    """The packages in the order of the page's table, loose modules in one rank."""
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [name.rstrip("/") for row in rows for name in re.findall(r"`([a-z_/]+)`", row)]


def imports(source: str) -> Iterator[str]:
    """Every imported module of the package, wherever the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def pointing_down(module: str, source: str, ranks: list[str]) -> list[str]:
    """Imports of a package that comes later in the order, or of the public names."""
    own = module.split(".")[1]
    found = []
    for name in imports(source):
        top, _, rest = name.partition(".")
        package = rest.partition(".")[0]
        if top == "subgnn" and package != own and (package not in ranks or ranks.index(package) > ranks.index(own)):
            found.append(name)
    return found


@cache
def modules() -> dict[str, Path]:
    paths = sorted((SOURCE / "subgnn").rglob("*.py"))
    named = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in paths}
    return {name: path for name, path in named.items() if name not in ("subgnn.__init__", "subgnn.__main__")}


def test_every_package_has_a_place_in_the_order() -> None:
    assert {name.split(".")[1] for name in modules()} == set(order())


@pytest.mark.parametrize("name", modules())
def test_imports_point_up(name: str) -> None:
    assert not pointing_down(name, modules()[name].read_text(), order())


def test_a_planted_import_is_found() -> None:
    planted = (
        "def f():\n    from subgnn.cli.app import app\n    import subgnn.training.loop\n    import subgnn.errors\n"
    )
    assert pointing_down("subgnn.models.auto", planted, order()) == ["subgnn.cli.app.app", "subgnn.training.loop"]


def lab_imports(source: str) -> list[str]:
    """Modules of the laboratory that a source imports, or names in a string, as for an import at first use."""
    strings = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    named = [*imports(source), *(text for text in strings if isinstance(text, str))]
    return [name for name in named if re.fullmatch(r"subgnn\.lab(\.\w+)*", name)]


def test_only_the_command_line_imports_the_laboratory() -> None:
    folder = SOURCE / "subgnn"
    library = [path for path in folder.rglob("*.py") if path.relative_to(folder).parts[0] not in ("cli", "lab")]
    assert folder / "__init__.py" in library
    assert {path: found for path in library if (found := lab_imports(path.read_text()))} == {}


def test_a_planted_import_of_the_laboratory_is_found() -> None:
    planted = "def f():\n    from subgnn.lab.tuning import tune\n    import subgnn.labels\nNAMES = ['subgnn.lab']\n"
    assert lab_imports(planted) == ["subgnn.lab.tuning.tune", "subgnn.lab"]


def test_few_modules_are_loose() -> None:
    assert len(list((SOURCE / "subgnn").glob("*.py"))) <= 10
