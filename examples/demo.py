"""SubGNN on DENSITY, from nothing to predictions and a page: generate, check, pretrain, prepare, train, predict.

    python examples/demo.py [FOLDER]

It needs PyTorch Geometric, which pretrains the node embeddings: pip install 'subgnn[pyg]'. On this dataset they
validate no better than the recipe's random ones: the label lies in the shape of a subgraph, not in who is in it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from subgnn.cli.app import main

DIM = 32


def step(*arguments: str) -> None:
    """Run one command as a user would type it."""
    print(f"\n$ subgnn {' '.join(arguments)}", flush=True)
    code = main(list(arguments))
    if code:
        sys.exit(code)


def demo(folder: Path) -> None:
    """Run the demonstration into a folder."""
    if folder.exists():
        shutil.rmtree(folder)
    dataset, vectors, run = folder / "density", folder / "vectors.safetensors", folder / "run"
    step("data", "generate", "density", "--out", str(dataset), "--seed", "0")
    step("data", "check", str(dataset))
    short = ["--set", "pretrain.epochs=10"]
    step("pretrain", str(dataset), "--method", "gin", "--dim", str(DIM), *short, "--out", str(vectors))
    recipe = ["--recipe", "structure", "--seed", "0"]
    start = ["--set", f"embeddings.source={vectors}", "--set", f"embeddings.dim={DIM}"]
    step("prepare", str(dataset), *recipe)
    step("train", str(dataset), *recipe, *start, "--out", str(run))
    new = folder / "new.tsv"
    lines = (dataset / "subgraphs.tsv").read_text(encoding="utf-8").splitlines()
    new.write_text("".join(line.split("\t")[0] + "\n" for line in lines[:5]), encoding="utf-8")
    step("predict", str(run), "--subgraphs", str(new), "--out", str(folder / "predictions.tsv"))
    results = json.loads((run / "run.json").read_text(encoding="utf-8"))
    print(f"\ntest micro-F1: {results['test']['micro_f1']:.3f} (majority class: about .33)")
    print(f"the page of the run, for a browser: {run / 'report.html'}")


if __name__ == "__main__":
    demo(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
