"""Measures of the source tree: its size, the packages that import each other, its smallest and largest parts.

    python benchmarks/tree.py [SRC ...]

Prints a column for each source folder (by default ``src``). A package is a folder or a loose module; imports inside
functions count, those for type checking do not. Parameters do not include ``self`` and ``cls``.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter, defaultdict
from pathlib import Path


def imported(tree: ast.Module, modules: set[str]) -> set[str]:
    """The modules of the package that a module imports."""
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
    """The measures of one source folder."""
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, default=[Path("src")])
    columns = [measure(source) for source in parser.parse_args().sources]
    for name in columns[0]:
        print(f"{name:38}" + "".join(f"{column[name]:>9,}" for column in columns))
