"""From raw, messy tables to ranked lists in nine commands: gene sets, payments, and an ablation.

    python examples/own_data.py [FOLDER]

The tables are toys of toy_tables.py, made messy: gene sets with aliases, a second table of categories with gaps, and
weights under a title of their own; payments with a decimal comma that repeat, and alerts with columns that no model
uses. Nothing is prepared by hand: options say what is meant.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from toy_tables import gene_tables, transfer_tables

from subgnn.cli.app import main

_ALIASES = {"TP53": "p53|LFS1", "BCL2": "Bcl-2", "CASP3": "CPP32|apopain", "BRCA1": "RNF53"}


def write_genes(folder: Path) -> None:
    """Edges with a score, gene sets as GMT, categories in a table of their own, and aliases."""
    rng = random.Random(0)
    edges, members = gene_tables(rng)
    rows = [f"{u},{v},{300 + int(rng.random() * 700)},toy" for u, v in edges]
    _write(folder / "edges.csv", ["protein1,protein2,combined_score,source_db", *rows])
    sets: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for name, gene, kind, _ in members:
        sets.setdefault(name, []).append(_ALIASES.get(gene, gene).split("|")[0])
        kinds[name] = kind
    _write(folder / "sets.gmt", ["\t".join([name, "a toy", *genes]) for name, genes in sets.items()])
    # Every twelfth set has no category yet, written in one of three ways; one row is about a set that is not here.
    gaps = ("", "NA", "None")
    cells = {name: gaps[i // 12 % 3] if i % 12 == 5 else kind for i, (name, kind) in enumerate(kinds.items())}
    _write(folder / "categories.tsv", ["Set name\tCategory", *map("\t".join, cells.items()), "retired_1\tglycolysis"])
    _write(folder / "aliases.csv", ["symbol,synonyms", *map(",".join, _ALIASES.items())])


def write_payments(folder: Path) -> None:
    """Payments with semicolons and decimal commas, some repeated; alerts with a list of accounts in each row."""
    rng = random.Random(1)
    payments, cases = transfer_tables(rng)
    rows = [f"{row[0]};{row[1]};{10 + int(rng.random() * 990)},50" for row in payments]
    _write(
        folder / "payments.csv",
        ["payer;payee;amount", *rows, *(f"{row.rpartition(';')[0]};1000000,00" for row in rows[:20])],
    )
    alerts: dict[str, tuple[list[str], str]] = {}
    for name, account, kind, *_ in cases:
        alerts.setdefault(name, ([], kind))[0].append(account)
    lines = [f"{name},{' '.join(accounts)},{kind},EU" for name, (accounts, kind) in alerts.items()]
    _write(folder / "alerts.csv", ["alert,accounts,outcome,region", *lines])


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def subgnn(*words: object) -> None:
    """Run a command of subgnn, as in a shell."""
    print("\n$ subgnn", *words)
    if code := main([str(word) for word in words]):
        raise SystemExit(code)


if __name__ == "__main__":
    base = Path(sys.argv[1] if len(sys.argv) > 1 else "own_data")
    genes, payments, runs = base / "genes", base / "payments", base / "runs"
    write_genes(genes)
    write_payments(payments)
    tables = [genes / "edges.csv", genes / "sets.gmt", "--labels", genes / "categories.tsv"]
    tables += ["--aliases", genes / "aliases.csv"]
    alerts = [payments / "payments.csv", payments / "alerts.csv", "--repeated", "sum", "--directed"]

    subgnn("data", "check", *tables)
    subgnn("train", *tables, "--unlabelled", "predict", "--recipe", "bag", "--out", runs / "genes")
    subgnn("predict", runs / "genes", "--subgraphs", genes / "sets.gmt", "--out", base / "genes.tsv")

    subgnn("data", "check", *alerts)
    subgnn("train", *alerts, "--recipe", "topology", "--out", runs / "alerts")
    subgnn("predict", runs / "alerts", "--subgraphs", payments / "alerts.csv", "--out", base / "alerts.tsv")

    quick = ["--recipe", "subgnn", "--set", "training.epochs=3"]
    subgnn("train", *tables, *quick, "--out", runs / "both")
    subgnn("train", *tables, *quick, "--set", "channels=N", "--set", "channels.N/border=10", "--out", runs / "one")
    subgnn("runs", runs)
