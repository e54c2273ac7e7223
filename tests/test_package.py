"""The package as it is installed: metadata, and a wheel that is built, installed in an empty environment and used."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from subgnn import __version__
from tests.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"benchmark", "docs", "test"}
# Packages whose module has another name, and those that come with another package.
DISTRIBUTIONS = {
    "llvmlite": "numba",
    "triton": "torch",
    "markupsafe": "jinja2",
    "prometheus_client": "prometheus-client",
    "pydantic_core": "pydantic",
    "sklearn": "scikit-learn",
    "sqlalchemy": "optuna",
    "starlette": "fastapi",
}


def names(requirements: list[str]) -> set[str]:
    """The names of required distributions, without versions."""
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def imports(tree: ast.AST, *, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Top-level names of imported modules, each with whether it is imported only where it is used, or for types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0], inside
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        yield from imports(node, inside=inside or function or for_types)


def test_every_import_is_of_a_declared_dependency():
    required, optional = names(PROJECT["dependencies"]), names([one for found in EXTRAS.values() for one in found])
    for path in (ROOT / "src").rglob("*.py"):
        extra = names(EXTRAS["serve"]) if path.parent.name == "serve" else set()
        for module, inside in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if module == "subgnn" or module in sys.stdlib_module_names:
                continue
            name = DISTRIBUTIONS.get(module, module)
            assert name in required | extra | (optional if inside else set()), f"{path}: {module}"


def test_extras_are_complete_and_documented_and_errors_name_no_other():
    users = set(EXTRAS) - FOR_DEVELOPERS - {"all"}
    assert EXTRAS["all"] == [f"subgnn[{','.join(sorted(users))}]"]
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(EXTRAS)
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r'(?<!Dict\()\bextra ?= ?"(\w+)"', text)}
    assert named == users


def test_the_changelog_begins_with_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changelog, re.MULTILINE)[1] == __version__


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend that pip calls."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True, text=True)
    return folder / done.stdout.split()[-1]


def test_the_wheel_has_every_file_of_the_package(wheel):
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tracked = {path.removeprefix("src/") for path in listed.splitlines() if (ROOT / path).is_file()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")}
        metadata = archive.read(f"subgnn-{__version__}.dist-info/METADATA").decode()
    assert tracked <= packed
    assert {Path(name).suffix for name in packed} == {Path(name).suffix for name in tracked}
    assert "License-Expression: MIT" in metadata
    assert "Provides-Extra: all" in metadata


USE = """
import sys
from pathlib import Path
import subgnn
from subgnn.cli.app import main
assert sys.prefix in subgnn.__file__, subgnn.__file__
for words in (
    "recipes --json",
    "data generate component --num-nodes 200 --num-subgraphs 20 --out data",
    "data check data",
    "train data --recipe bag --out run",
    "predict run --subgraphs data/subgraphs.tsv --out predictions.tsv",
):
    assert main(words.split()) == 0, words
"""


def copy_compiled(source: Path, target: Path) -> None:
    """Copy what numba has compiled, which it uses if the sources have the same times, to save the time of compiling."""
    for path in target.glob("*.py"):
        shutil.copystat(source / path.name, path)
    (target / "__pycache__").mkdir()
    for path in (*source.glob("__pycache__/*.nbi"), *source.glob("__pycache__/*.nbc")):
        shutil.copy(path, target / "__pycache__")


@pytest.mark.slow
def test_the_wheel_is_installed_in_an_empty_environment_and_used(wheel, tmp_path):
    home = tmp_path / "environment"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    where = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    subprocess.run([*where, "install", "-q", "--no-deps", "--no-index", "--no-compile", wheel], check=True)
    # Dependencies are not installed again: they are found behind the environment's own packages. Python does not read
    # the .pth files there, so an editable installation of this package is not found.
    own = Path(sysconfig.get_path("purelib", vars={"base": home}))
    found = [folder for folder in sys.path if folder.endswith("site-packages")]
    (own / "dependencies.pth").write_text("\n".join(found), encoding="utf-8")
    copy_compiled(ROOT / "src" / "subgnn" / "kernels", own / "subgnn" / "kernels")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    shared = {"env": environment, "cwd": tmp_path, "capture_output": True, "text": True}
    version = subprocess.run([home / "bin" / "subgnn", "--version"], check=True, **shared)
    assert version.stdout == f"subgnn {__version__}\n"
    done = subprocess.run([python, "-c", USE], check=False, **shared)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "predictions.tsv").read_text(encoding="utf-8").splitlines()) == 21
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_citation_names_the_paper_and_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in text
    for line in ("cff-version: 1.2.0", "preferred-citation:", "  title: Subgraph Neural Networks", "  year: 2020"):
        assert f"{line}\n" in text
