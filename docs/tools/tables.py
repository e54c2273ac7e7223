"""Write the page of the benchmark and the tables of docs/results.md from our own runs: ``python docs/tools/tables.py``.

A table stands between ``<!-- benchmark OPTIONS -->`` and ``<!-- end of benchmark -->``. Options: ``datasets=a|b``, by
default all, and ``protocol=stored`` (the default) or another.
"""

import re
import shlex
from pathlib import Path

from subgnn.lab.suites.comparison import rank_models
from subgnn.lab.suites.page import benchmark_page
from subgnn.lab.suites.report import MISSING, Benchmark, open_benchmark, score_text
from subgnn.render import markdown_cells, write_page

DOCS = Path(__file__).parents[1]
_BLOCK = re.compile(r"(<!-- benchmark (?P<options>.*?) -->\n).*?(<!-- end of benchmark -->)", re.S)


def markdown_table(benchmark: Benchmark, datasets: str = "", protocol: str = "stored") -> str:
    """Models by datasets with their mean ranks; the best of a column is bold."""
    scores = benchmark.scores(protocol)
    ranking = rank_models(scores)
    best, names = scores.round(3).max(), datasets.split("|") if datasets else list(scores.columns)
    lines = [["", "rank", *names], ["---"] * (2 + len(names))]
    for model in [*ranking.models, *(name for name in scores.index if name not in ranking.models)]:
        rank, cells = ranking.rank(model), []
        for name in names:
            text = score_text(score := scores.at[model, name])
            cells.append(f"**{text}**" if round(score, 3) == best[name] else text)
        lines.append([model, MISSING if rank is None else f"{rank:.1f}", *cells])
    return "".join(f"{markdown_cells(line)}\n" for line in lines)


def fill_document(text: str, benchmark: Benchmark) -> str:
    """A document with its tables written again."""

    def fill(match: re.Match[str]) -> str:
        options = dict(word.split("=", 1) for word in shlex.split(match["options"]))
        return f"{match[1]}\n{markdown_table(benchmark, **options)}\n{match[3]}"

    return _BLOCK.sub(fill, text)


if __name__ == "__main__":
    ours, page = open_benchmark([]), DOCS / "results.md"
    write_page(benchmark_page(ours), DOCS / "subgraphbench.html")
    write_page(fill_document(page.read_text(encoding="utf-8"), ours), page)
