"""Write the benchmark's page and the tables of README and docs/results.md: ``python docs/tools/tables.py``.

A table stands between ``<!-- benchmark OPTIONS -->`` and ``<!-- end of benchmark -->``. Options: ``datasets=a|b`` and
``models='a|b'``, by default all, and ``protocol=stored`` (the default) or another.
"""

import re
import shlex
from pathlib import Path

from subgnn.lab.suites.comparison import rank_models
from subgnn.lab.suites.page import benchmark_page
from subgnn.lab.suites.report import MISSING, Benchmark, open_benchmark, score_text
from subgnn.render import markdown_cells, write_page

DOCS = Path(__file__).parents[1]
PAGES = [DOCS.parent / "README.md", DOCS / "results.md"]
_BLOCK = re.compile(r"(<!-- benchmark (?P<options>.*?) -->\n).*?(<!-- end of benchmark -->)", re.S)


def markdown_table(benchmark: Benchmark, datasets: str = "", models: str = "", protocol: str = "stored") -> str:
    """Models by datasets, with mean ranks; the best of a column is bold, and published scores are in brackets."""
    scores = benchmark.scores(protocol)
    ranking = rank_models(scores)
    best, names = scores.round(3).max(), datasets.split("|") if datasets else list(scores.columns)
    lines = [["", "rank", *names], ["---"] * (2 + len(names))]
    ordered = [*ranking.models, *(name for name in scores.index if name not in ranking.models)]
    for model in models.split("|") if models else ordered:
        rank, cells = ranking.rank(model), []
        for name in names:
            text, published = score_text(score := scores.at[model, name]), benchmark.published(model, name)
            text = f"**{text}**" if round(score, 3) == best[name] else text
            cells.append(text if published is None else f"{text} [{score_text(published)}]")
        lines.append([model, MISSING if rank is None else f"{rank:.1f}", *cells])
    return "".join(f"{markdown_cells(line)}\n" for line in lines)


def fill_document(text: str, benchmark: Benchmark) -> str:
    """A document with its tables written again."""

    def fill(match: re.Match[str]) -> str:
        options = dict(word.split("=", 1) for word in shlex.split(match["options"]))
        return f"{match[1]}\n{markdown_table(benchmark, **options)}\n{match[3]}"

    return _BLOCK.sub(fill, text)


if __name__ == "__main__":
    ours = open_benchmark([])
    write_page(benchmark_page(ours), DOCS / "subgraphbench.html")
    for page in PAGES:
        write_page(fill_document(page.read_text(encoding="utf-8"), ours), page)
