"""From nothing to predictions and a page: generate a dataset, check it, train the best model for it, predict.

    python examples/demo.py [FOLDER]

The dataset is DENSITY, whose labels lie in the shape of a subgraph. The leaderboard says so: models that see shapes
lead, and models that see which nodes a subgraph has are no better than always
predicting the most frequent class.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

from subgnn.cli.app import main

QUICK = '["bag", "profiles", "diffusion", "topology", "diffusion-topology"]'


def step(*arguments: str) -> None:
    """Run one command as a user would type it."""
    print(f"\n$ subgnn {shlex.join(arguments)}", flush=True)
    code = main(list(arguments))
    if code:
        sys.exit(code)


def demo(folder: Path) -> None:
    """Run the demonstration into a folder."""
    if folder.exists():
        shutil.rmtree(folder)
    dataset, run = folder / "density", folder / "run"
    step("data", "generate", "density", "--out", str(dataset), "--seed", "0")
    step("data", "check", str(dataset))
    # Five quick candidates, judged once each: without these settings, all of them, for five minutes at most.
    few = ["--set", f"auto.only={QUICK}", "--set", "auto.repeats=1"]
    step("train", str(dataset), *few, "--out", str(run))
    new = folder / "new.tsv"
    lines = (dataset / "subgraphs.tsv").read_text(encoding="utf-8").splitlines()
    new.write_text("".join(line.split("\t")[0] + "\n" for line in lines[:5]), encoding="utf-8")
    step("predict", str(run), "--subgraphs", str(new), "--out", str(folder / "predictions.tsv"))
    results = json.loads((run / "run.json").read_text(encoding="utf-8"))
    print(f"\ntest micro-F1: {results['test']['micro_f1']:.3f} (majority class: about .33)")
    print(f"the page of the run, for a browser: {run / 'report.html'}")


if __name__ == "__main__":
    demo(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
