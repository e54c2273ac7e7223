"""The paper's model and the best one on the paper's DENSITY: generate, train both, predict, explain, compare.

    python examples/demo.py [FOLDER]

The labels of DENSITY depend on the shape of a subgraph. SubGNN sees shapes through its structure channel; a bag of
nodes does not, and the last line shows how little it finds.
"""

from __future__ import annotations

import csv
import shlex
import shutil
import sys
from pathlib import Path

from subgnn.cli.app import main
from subgnn.result import read_result


def step(*arguments: str | Path) -> None:
    """Run one command as a user would type it."""
    words = [str(word) for word in arguments]
    print(f"\n$ subgnn {shlex.join(words)}", flush=True)
    code = main(words)
    if code:
        sys.exit(code)


def demo(folder: Path) -> None:
    """Run the demonstration into a folder."""
    if folder.exists():
        shutil.rmtree(folder)
    dataset, paper, best = folder / "density", folder / "runs" / "paper", folder / "runs" / "best"
    step("data", "generate", "density", "--out", dataset, "--seed", "0")
    step("train", dataset, "--recipe", "alsentzer2020_density", "--out", paper)
    step("train", dataset, "--out", best)

    rows = [line.split("\t") for line in (dataset / "subgraphs.tsv").read_text(encoding="utf-8").splitlines()]
    test = [row for row in rows if row[2] == "test"]
    new, labels, why = folder / "new.tsv", folder / "predictions.tsv", folder / "why.tsv"
    new.write_text(test[0][0] + "\n", encoding="utf-8")
    step("predict", best, "--subgraphs", new, "--out", labels)
    step("explain", paper, "--subgraphs", new, "--out", why)
    explained = _rows(why)
    print(f"best model: {_rows(labels)[0]['label']}; SubGNN: {explained[0]['label']}; the dataset: {test[0][1]}")
    print("What SubGNN's logits of labels 0, 1 and 2 owe to its parts:")
    for row in explained:
        if row["kind"] in ("logits", "part", "channel"):
            name = {"": "logits", "z0": "the nodes"}.get(row["item"], f"the {row['item']} channel")
            print(f"  {name:24}" + "".join(f"{float(row[label]):+8.2f}" for label in "012"))
    step("runs", folder / "runs", "--page", folder / "compare.html")
    _summary(paper, best)


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _summary(paper: Path, best: Path) -> None:
    """Print the scores of both runs beside the paper's, and what a bag of nodes finds."""
    by_paper, by_best = read_result(paper), read_result(best)
    others = {row.name: row.score for row in by_best.leaderboard}
    published = by_paper.published["micro_f1"]
    print("\ntest micro-F1 on DENSITY")
    print(f"  SubGNN, the authors' settings   {by_paper.test['micro_f1']:.3f}   (paper: {published:.3f})")
    print(f"  subgnn train, the best model    {by_best.test['micro_f1']:.3f}")
    print(f"\n{by_best.signal}")
    print(
        f"A bag of nodes fails here: it scores {others['bag']:.3f} out of fold; always predicting the most frequent "
        f"class scores {others['constant']:.3f}."
    )


if __name__ == "__main__":
    demo(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
