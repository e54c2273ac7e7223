"""Measures of the source tree: its size, the packages that import each other, its smallest and largest parts.

    python benchmarks/tree.py [SRC ...]
    python benchmarks/tree.py --walk

Prints a column for each source folder (by default ``src``). A package is a folder or a loose module; imports inside
functions count, those for type checking do not. Parameters do not include ``self`` and ``cls``. ``--walk`` lists the
modules whose functions run from ``subgnn train DIR --recipe bag`` to the first ``fit``: those that only read the
dataset, those that all packages use (errors, files, locks, kernels), and the others.
"""

import argparse
import ast
import os
import sys
from collections import Counter, defaultdict
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType


def imported(tree: ast.Module, modules: set[str]) -> set[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {found for name in names if (found := name if name in modules else name.rpartition(".")[0]) in modules}


def in_cycles(edges: dict[str, set[str]]) -> list[str]:
    """The packages that can reach themselves through others."""
    reach = {package: set(others) for package, others in edges.items()}
    for middle in list(reach):
        for package in reach:
            if middle in reach[package]:
                reach[package] |= reach[middle]
    return sorted(package for package in reach if package in reach[package])


def measure(source: Path) -> dict[str, int]:
    paths = {".".join(p.relative_to(source).with_suffix("").parts): p for p in sorted(source.glob("subgnn/**/*.py"))}
    texts = {name.removesuffix(".__init__"): path.read_text() for name, path in paths.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    edges, importers, uses = defaultdict(set), Counter[str](), Counter[tuple[str, str]]()
    parameters, lengths, helpers = [], [], set()
    for name, tree in trees.items():
        for other in imported(tree, set(trees)) - {name}:
            importers[other] += 1
            ours, theirs = f"{name}.".split(".")[1], f"{other}.".split(".")[1]
            edges[ours] |= {theirs} - {ours, ""}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                parameters.append(sum(a not in ("self", "cls") for a in given))
                lengths.append((node.end_lineno or 0) - node.lineno + 1)
                helpers |= {(name, node.name)} if node.name.startswith("_") and node.name[1] != "_" else set()
            elif isinstance(node, ast.Name | ast.Attribute):
                uses[name, node.id if isinstance(node, ast.Name) else node.attr] += 1
    return {
        "modules": len(texts),
        "lines": sum(text.count("\n") for text in texts.values()),
        "loose modules": len(list((source / "subgnn").glob("*.py"))),
        "packages in cycles": len(in_cycles(edges)),
        "modules with one importer": sum(count == 1 for count in importers.values()),
        "functions with 7 or more parameters": sum(count >= 7 for count in parameters),
        "longest function, lines": max(lengths),
        "private helpers": len(helpers),
        "private helpers used once": sum(uses[helper] == 1 for helper in helpers),
    }


FOUNDATION = {"errors", "ragged", "rng", "task", "versions", "parallel", "storage", "kernels"}


def walk() -> dict[str, list[str]]:
    """The modules whose functions run between ``subgnn train`` and the first fit, in the order of their first call."""
    from subgnn.cli.app import main
    from subgnn.training import run

    reading, others = dict[str, None](), dict[str, None]()

    def note(frame: FrameType | None, event: str, _: object) -> None:
        module = "" if frame is None else frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith("subgnn."):
            return
        callers = set()
        while frame is not None:
            callers.add((frame.f_globals.get("__name__"), frame.f_code.co_name))
            frame = frame.f_back
        if any(name == "<module>" for where, name in callers if where != "__main__"):
            return  # an import
        (reading if ("subgnn.data.formats", "read_dataset") in callers else others).setdefault(module)

    def stop_at_fit(*_: object, **__: object) -> None:
        sys.setprofile(None)
        raise KeyboardInterrupt

    run.fit = stop_at_fit  # type: ignore[assignment]
    with TemporaryDirectory() as folder:
        small = ["--num-nodes", "200", "--num-subgraphs", "20"]
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            main(["data", "generate", "component", *small, "--out", f"{folder}/data", "--json"])
            sys.setprofile(note)
            main(["train", f"{folder}/data", "--recipe", "bag", "--out", f"{folder}/run", "--json"])
    everywhere = [name for name in (*others, *reading) if name.split(".")[1] in FOUNDATION]
    return {
        "the walk": [name for name in others if name not in everywhere],
        "reading the dataset": [name for name in reading if name not in others and name not in everywhere],
        "used everywhere": list(dict.fromkeys(everywhere)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, default=[Path("src")])
    parser.add_argument("--walk", action="store_true", help="list the modules between subgnn train and the first fit")
    given = parser.parse_args()
    if given.walk:
        for step, names in walk().items():
            print(f"{step}: {len(names)}", *(name.removeprefix("subgnn.") for name in names), sep="\n    ")
        sys.exit()
    columns = [measure(source) for source in given.sources]
    for name in columns[0]:
        print(f"{name:38}" + "".join(f"{column[name]:>9,}" for column in columns))
