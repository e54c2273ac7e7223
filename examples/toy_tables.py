"""Write the small tables that docs/quickstart.md uses: examples/genes and examples/transfers.

    python examples/toy_tables.py [FOLDER]

Toys, drawn from a fixed seed. The gene symbols and the process each belongs to are real; the edges and the gene sets
are not, and the accounts are invented.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

_PROCESSES = {
    "apoptosis": "TP53 BAX BAK1 BCL2 CASP3 CASP8 CASP9 FAS CYCS APAF1 BID XIAP",
    "dna_repair": "BRCA1 BRCA2 RAD51 ATM ATR CHEK1 CHEK2 XRCC5 XRCC6 MLH1 MSH2 PARP1",
    "glycolysis": "HK1 HK2 GPI PFKL PFKM ALDOA TPI1 GAPDH PGK1 PGAM1 ENO1 PKM",
    "antigen": "HLA-A HLA-B HLA-C B2M TAP1 TAP2 TAPBP CALR CANX PDIA3 ERAP1 PSMB8",
}
PROCESSES = {process: genes.split() for process, genes in _PROCESSES.items()}


def _pick(rng: random.Random, items: Sequence[str], count: int) -> list[str]:
    """Some of the items, in their order; from random() alone, which no release of Python changes."""
    keys = {item: rng.random() for item in items}
    return sorted(sorted(items, key=keys.__getitem__)[:count], key=items.index)


def gene_tables(rng: random.Random) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Edges, many within a process and few between two; sets of four or five genes, one of them from elsewhere."""
    process_of = {gene: process for process, genes in PROCESSES.items() for gene in genes}
    edges = [
        (u, v)
        for u, v in combinations(process_of, 2)
        if rng.random() < (0.4 if process_of[u] == process_of[v] else 0.01)
    ]
    members = []
    for process, genes in PROCESSES.items():
        for i in range(12):
            others = [gene for gene in process_of if gene not in genes]
            chosen = _pick(rng, genes, 3 + i % 2) + _pick(rng, others, 1)
            split = "train" if i < 8 else "val" if i < 10 else "test"
            members += [(f"{process}_{i + 1}", gene, process, split) for gene in chosen]
    return edges, members


def transfer_tables(rng: random.Random) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Payments among 300 accounts; cases of five accounts that pay in a ring, or of five that all pay one."""
    accounts = [f"AC-{i:04d}" for i in range(300)]
    pairs = {(u, v) for u in accounts for v in _pick(rng, accounts, 2) if u != v}
    members = []
    for i in range(40):
        case = accounts[5 * i : 5 * i + 5]
        ring = i % 2 == 0
        pairs |= {(case[j], case[(j + 1) % 5]) for j in range(5)} if ring else {(u, case[0]) for u in case[1:]}
        members += [(f"case-{i + 1}", account, "ring" if ring else "collector") for account in case]
    payments = [(u, v, f"{10 + 990 * rng.random():.2f}") for u, v in sorted(pairs)]
    return payments, members


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A CSV with a header line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_tables(folder: Path) -> None:
    """All four tables."""
    edges, members = gene_tables(random.Random(0))
    write_table(folder / "genes" / "edges.csv", ("source", "target"), edges)
    write_table(folder / "genes" / "members.csv", ("subgraph", "node", "label", "split"), members)
    payments, members = transfer_tables(random.Random(0))
    write_table(folder / "transfers" / "payments.csv", ("payer", "payee", "amount"), payments)
    write_table(folder / "transfers" / "cases.csv", ("subgraph", "node", "label"), members)


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
