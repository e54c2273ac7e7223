"""The page of a run: one HTML file that needs nothing else, no script, no network.

RUN/report.html       what was run, how it learned, what it answers, and how to have it again
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.reports.answers import agreement, parts, reliability
from subgnn.reports.findings import Findings, find
from subgnn.reports.markup import Markup, facts, join, paragraph, section, tag
from subgnn.reports.overview import curves, overview
from subgnn.reports.pictures import pictures
from subgnn.reports.reproduce import command, recipe_toml
from subgnn.reports.style import STYLE
from subgnn.storage.files import atomic_write
from subgnn.training.run_dir import PAGE, read_results, source_of
from subgnn.versions import versions

_LEAD = "A subgraph neural network: what it was trained on, and how it does."
_LEAD_BASELINE = "A baseline for subgraphs: what it was trained on, and how it does."
_CONTENTS = {
    "run": "What was run",
    "curves": "How it learned",
    "answers": "Answers",
    "parts": "Parts",
    "subgraphs": "Subgraphs",
    "calibration": "Calibration",
    "reproduce": "Reproduce",
}


def run_report(run: Path, dataset: Dataset, *, vectors: NDArray[np.float32] | None = None) -> str:
    """The page of a finished run.

    Args:
        dataset: the one it was trained on.
        vectors: z_S of all its subgraphs, where they are at hand; by default they are computed.

    Raises:
        DataError: where the run is not finished or damaged, or the dataset is another one.
    """
    found = find(run, dataset, vectors=vectors)
    title = f"{found.results['recipe']} on {dataset.name}, seed {found.results['seed']}"
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", title),
            tag("style", Markup(STYLE)),
        ]
    )
    sections = {name: words for name, words in _CONTENTS.items() if found.network is not None or name != "parts"}
    links = tag("ul", *(tag("li", tag("a", words, href=f"#{name}")) for name, words in sections.items()))
    body = join(
        [
            tag(
                "header",
                tag("h1", title),
                paragraph(_LEAD if found.network is not None else _LEAD_BASELINE, class_="lead"),
                tag("nav", links, aria_label="Contents"),
            ),
            tag(
                "main",
                overview(found),
                curves(found),
                agreement(found),
                parts(found),
                pictures(found),
                reliability(found),
                _reproduce(found),
            ),
            tag("footer", paragraph("Written by subgnn. This file needs no network and no other file.")),
        ]
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def _reproduce(found: Findings) -> Markup:
    recipe = found.recipe
    line, needs_file = command(recipe, found.results)
    seen = found.results.get("versions")
    used = ", ".join(f"{name} {version}" for name, version in (seen or versions()).items())
    words = [paragraph("On a CPU, the same settings, seed and versions give the same weights.")]
    if needs_file:
        words.append(paragraph(f"Save the settings below as {recipe.name}.toml first."))
    pairs = [
        ("Versions" if seen else "Versions this page was written with", used),
        ("Graph, SHA-256 of its content", found.checkpoint.spec.graph_hash),
        ("Subgraphs, SHA-256 of nodes, labels and splits", found.dataset.subgraphs.content_hash),
    ]
    settings = tag("details", tag("summary", "All settings"), tag("pre", tag("code", recipe_toml(recipe))))
    shown = tag("pre", tag("code", line), class_="command")
    return section("reproduce", "How to reproduce it", *words, shown, facts(pairs, class_="facts long"), settings)


def write_page(page: str, out: Path, *, overwrite: bool = True) -> None:
    """Write a page; the file appears whole or not at all."""
    with atomic_write(out, overwrite=overwrite) as temporary:
        temporary.write_text(page, encoding="utf-8")


def write_report(run: Path, out: Path | None = None, *, data: Path | None = None, overwrite: bool = False) -> Path:
    """Write the page of a finished run, and return where it is.

    Args:
        out: where to; by default report.html in the run's folder, which is replaced.
        data: the dataset; by default where the run read it.
        overwrite: replace what is at ``out``.
    """
    results = read_results(run)
    source = source_of(results, data)
    page = run_report(run, read_dataset(source))
    write_page(page, out or run / PAGE, overwrite=overwrite or out is None)
    return out or run / PAGE
