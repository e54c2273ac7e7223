"""Seven datasets from public files of sets: patients, recipes, shopping trips, papers, authors, reactions and films.

Five of them have no graph of their own. Their labelled sets are drawn from all that are eligible, in proportion to
classes, and the graph joins nodes that occur together in a set that is *not* labelled, so that it says nothing about
the labelled ones; some of their nodes have no edge. Nodes are numbered in order, those of labelled sets first.
"""

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from subgnn.config.files import Count
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets.builder import Builder, Draft, Files, Fractions, OnStep, is_dropped, json_files, source_lines
from subgnn.lab.datasets.rare_diseases import build_phenotype_graph, labelled_group_split, read_hpo
from subgnn.rng import stream
from subgnn.storage.files import MAX_JSON, parse_json, read_bounded

Item = tuple[frozenset[Any], tuple[str, ...]]
"""The nodes of a set, and its label or labels."""
_VENUES = ("KDD", "WWW", "ICML", "NeurIPS", "STOC", "FOCS", "CVPR", "ICCV", "VLDB", "SIGMOD")
_COLOURED = re.compile(r"([0-9]{1,9}(?:,[0-9]{1,9})*)\s+([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class SetSettings:
    """Which sets are labelled, and which nodes the graph has."""

    min_nodes: Count = 3  # of a labelled set
    max_nodes: Count = 1_000
    classes: int = 0  # the most frequent ones are kept; 0 keeps all
    subgraphs: int = 4_000  # labelled sets that are drawn; 0 takes all
    min_sets: Count = 2  # that a node without a label has to be in
    graph_nodes: Count = 50_000  # at most so many nodes, the most frequent ones, join sets
    fractions: Fractions = (0.6, 0.2, 0.2)


def _build_sets(
    name: str, read: Callable[[Path], list[Item]], written: str,
    files: Files, settings: SetSettings, seed: int, on_step: OnStep,
) -> Draft:  # fmt: skip
    """A dataset of sets; ``written`` is how a node is named."""
    on_step("reading sets")
    items = read(files["source"])
    on_step("drawing labelled sets")
    chosen, dropped = _eligible(items, settings)
    if settings.subgraphs:
        # Of each class its share, rounded; of several labels, the first counts.
        share, rng = min(1.0, settings.subgraphs / max(1, len(chosen))), stream(seed, f"build/{name}/sample")
        by_class: dict[str, list[int]] = {}
        for i in chosen:
            by_class.setdefault(items[i][1][0], []).append(i)
        drawn = (rng.permutation(some)[: round(share * len(some))].tolist() for _, some in sorted(by_class.items()))
        chosen = sorted(i for some in drawn for i in some)
    if not chosen:
        raise DataError("no set is left", where=str(files["source"]), hint=f"dropped: {dropped}")
    on_step("joining nodes")
    taken, inside = {items[i][0] for i in chosen}, {node for i in chosen for node in items[i][0]}
    counts = Counter(node for nodes, _ in items for node in nodes)
    frequent = sorted((node for node in counts if counts[node] >= settings.min_sets), key=lambda n: (-counts[n], n))
    known = inside | set(frequent[: settings.graph_nodes])
    others = {nodes & known for nodes, _ in items if nodes not in taken}
    pairs = {pair for nodes in others for pair in combinations(sorted(nodes), 2)}
    order = [*sorted(inside), *sorted({node for pair in pairs for node in pair} - inside)]
    place = {node: i for i, node in enumerate(order)}
    ends = np.array(sorted(tuple(sorted((place[a], place[b]))) for a, b in pairs), np.int64).reshape(-1, 2)
    names = NodeNames({"name": Strings.of(written.format(node) for node in order)})
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=len(order), names=names)
    rows = [sorted(place[node] for node in items[i][0]) for i in chosen]
    return _draft(name, graph, rows, [items[i][1] for i in chosen], settings.fractions, seed, dropped)


def _draft(
    name: str, graph: Graph, rows: Sequence[Sequence[int]], labels: Sequence[tuple[str, ...]],
    fractions: Fractions, seed: int, dropped: dict[str, int],
) -> Draft:  # fmt: skip
    """Split each class by its share, and put everything together."""
    rng, several = stream(seed, f"build/{name}/split"), any(len(given) > 1 for given in labels)
    splits = labelled_group_split(range(len(rows)), labels, fractions, rng)
    given = list(labels) if several else [one for (one,) in labels]
    return Draft(graph, SubgraphSet.from_lists(rows, num_nodes=graph.num_nodes, labels=given, splits=splits), dropped)


def _eligible(items: list[Item], settings: SetSettings) -> tuple[list[int], dict[str, int]]:
    """The places of sets that may be labelled, equal ones once, and how many were dropped, by reason."""
    counts = Counter(label for _, labels in items for label in labels)
    kept = sorted(counts, key=lambda label: (-counts[label], label))[: settings.classes or None]
    found, dropped = dict[frozenset[Any], int](), dict[str, int]()
    for i, (nodes, labels) in enumerate(items):
        items[i] = nodes, tuple(label for label in labels if label in kept)
        reasons = {
            "sets of other classes": not items[i][1],
            "sets too small or too large": not settings.min_nodes <= len(nodes) <= settings.max_nodes,
            "sets equal to another": nodes in found,
        }
        if not is_dropped(dropped, reasons):
            found[nodes] = i
    return list(found.values()), dropped


def _read_recipes(path: Path) -> list[Item]:
    """``[{"id": 1, "cuisine": "greek", "ingredients": ["feta", ...]}, ...]``, in a ZIP archive or not."""
    content = read_bounded(path, MAX_JSON)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            info = next((one for one in packed.infolist() if one.filename.endswith(".json")), None)
            if info is None or info.file_size > MAX_JSON:
                raise DataError("no JSON of a usual size in it", where=str(path), hint="train.json.zip is accepted")
            content = packed.read(info)
    rows = parse_json(content, str(path), "the recipes of train.json are accepted")
    try:
        return [(frozenset(map(str, row["ingredients"])), (str(row["cuisine"]),)) for row in rows]
    except (TypeError, KeyError) as error:
        hint = "ingredients and cuisine are needed"
        raise DataError(f"a recipe without {error}", where=str(path), hint=hint) from None


def _read_coloured(name: Callable[[int], str], path: Path) -> list[Item]:
    """Lines ``12,7,30 4``: nodes, and the number of a class."""
    found = list[Item]()
    for number, line in source_lines(path):
        match = _COLOURED.fullmatch(line.strip())
        if match is None:
            hint = "accepted: node numbers with commas between them, a space, the number of a class"
            raise DataError(f"{excerpt(line)} is not a set", where=f"{path}:{number}", hint=hint)
        found.append((frozenset(map(int, match[1].split(","))), (name(int(match[2])),)))
    return found


def _read_authors(path: Path) -> list[Item]:
    """``{"papers": {author: [paper, ...]}, "areas": [area of each paper]}``; an author has the area of most papers.

    HyperGCN publishes both as pickles, which are programs and are not read here; docs/reproduce.md converts them.
    """
    given = parse_json(read_bounded(path, MAX_JSON), str(path), "an object with papers and areas is accepted")
    try:
        areas, found = [int(area) for area in given["areas"]], list[Item]()
        for papers in given["papers"].values():
            nodes = frozenset(map(int, papers))
            counts = Counter(areas[paper] for paper in nodes)
            best = min(counts, key=lambda area: (-counts[area], area))
            found.append((nodes, (f"area_{best}",)))
    except (TypeError, KeyError, IndexError, ValueError, AttributeError) as error:
        what = f"papers and areas do not fit ({type(error).__name__}: {error})"
        raise DataError(what, where=str(path), hint="each author has numbers of papers, each paper an area") from None
    return found


def _read_films(path: Path) -> list[Item]:
    """Director, three actors and keywords of each row of movie_metadata.csv; its genres."""
    people = ("director_name", "actor_1_name", "actor_2_name", "actor_3_name")
    text = read_bounded(path, MAX_JSON).decode("utf-8", errors="replace")
    rows, found = csv.DictReader(io.StringIO(text)), []
    lacking = [title for title in (*people, "plot_keywords", "genres") if title not in (rows.fieldnames or ())]
    if lacking:
        raise DataError(f"no column '{lacking[0]}'", where=str(path), hint="movie_metadata.csv is accepted")
    for row in rows:
        nodes = {f"person:{row[title].strip()}" for title in people if (row[title] or "").strip()}
        nodes |= {f"keyword:{word.strip()}" for word in (row["plot_keywords"] or "").split("|") if word.strip()}
        genres = (_plain(genre) for genre in (row["genres"] or "").split("|") if genre)
        found.append((frozenset(nodes), tuple(dict.fromkeys(genres))))
    return sorted(found, key=lambda item: sorted(item[0]))


def _plain(label: str) -> str:
    """A label with ``_`` for everything but letters and digits, because ``-`` joins labels."""
    return re.sub(r"[^A-Za-z0-9]", "_", label)


@dataclass(frozen=True, slots=True)
class ReactionSettings:
    """Which reactions are subgraphs; subsystems of transport, exchange and biomass are never classes."""

    min_metabolites: int = 3
    min_reactions: int = 20
    fractions: Fractions = (0.6, 0.2, 0.2)


def _build_ecoli(files: Files, settings: ReactionSettings, seed: int, on_step: OnStep) -> Draft:
    """Metabolites of a reaction; edges join what a reaction consumes with what it produces."""
    on_step("reading the model")
    path = files["source"]
    model = parse_json(read_bounded(path, MAX_JSON), str(path), "a metabolic model of BiGG in JSON is accepted")
    try:
        names = {str(one["id"]): str(one["name"]) for one in model["metabolites"]}
        order = {node: i for i, node in enumerate(sorted(names))}
        reactions = [
            (str(one.get("subsystem") or ""), {order[m]: float(k) for m, k in one["metabolites"].items()})
            for one in model["reactions"]
        ]
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise DataError(f"not a metabolic model ({error})", where=str(path), hint="iML1515.json is accepted") from None
    pairs = {(min(a, b), max(a, b)) for _, used in reactions for a, b in combinations(used, 2) if used[a] * used[b] < 0}
    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    written = Strings.of(f"{node} {names[node]}" for node in order)
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], num_nodes=len(order), names=NodeNames({"name": written}))
    never = re.compile("transport|exchange|biomass|demand", re.IGNORECASE)
    classes = [(name, used) for name, used in reactions if name and not never.search(name)]
    items: list[Item] = [(frozenset(used), (_plain(name),)) for name, used in classes]
    chosen, dropped = _eligible(items, SetSettings(min_nodes=settings.min_metabolites))
    counts = Counter(items[i][1][0] for i in chosen)
    kept = [i for i in chosen if counts[items[i][1][0]] >= settings.min_reactions]
    dropped["reactions of small subsystems"] = len(chosen) - len(kept)
    if not kept:
        raise DataError("no reaction is left", where=str(path), hint=f"dropped: {dropped}")
    rows, labels = [sorted(items[i][0]) for i in kept], [items[i][1] for i in kept]
    return _draft("ecoli", graph, rows, labels, settings.fractions, seed, dropped)


@dataclass(frozen=True, slots=True)
class PatientSettings:
    """Which patients are subgraphs, and how many a disease needs; patients of one publication are in one split."""

    min_phenotypes: int = 3
    min_patients: int = 15
    min_publications: int = 3
    fractions: Fractions = (0.6, 0.2, 0.2)


class _Patient(NamedTuple):
    id: str
    disease: str
    name: str
    publication: str
    present: frozenset[str]
    absent: frozenset[str]


def _read_patients(path: Path) -> Iterator[_Patient]:
    """The solved cases of a folder or archive of phenopackets; other JSON files are skipped."""
    for name, content in json_files(path):
        case = parse_json(content, f"{path}: {name}", "phenopackets in JSON are accepted")
        if not isinstance(case, dict) or "phenotypicFeatures" not in case:
            continue
        try:
            found = next(one for one in case["interpretations"] if one.get("progressStatus") == "SOLVED")
            disease, source = found["diagnosis"]["disease"], case["metaData"]["externalReferences"][0]["id"]
            features = [(str(one["type"]["id"]), bool(one.get("excluded"))) for one in case["phenotypicFeatures"]]
            present, absent = (frozenset(term for term, out in features if out == is_out) for is_out in (False, True))
            named = str(disease["id"]), str(disease["label"])
            yield _Patient(str(case["id"]), *named, str(source), present, absent - present)
        except (StopIteration, KeyError, TypeError, IndexError, AttributeError):
            continue  # not solved, without a publication, or without a disease


def _build_patients(files: Files, settings: PatientSettings, seed: int, on_step: OnStep) -> Draft:
    """Phenotypes of published patients, with those that were looked for and not found; the disease."""
    on_step("reading the Human Phenotype Ontology")
    release = read_hpo(files.get("hpo"))
    graph = build_phenotype_graph(release)
    on_step("reading patients")
    merged = release.ontology.merged()

    def places(terms: frozenset[str]) -> frozenset[int]:
        return graph.places(merged.get(term, term) for term in terms)

    read = ((case, places(case.present)) for case in _read_patients(files["source"]))
    cases = [(case, row) for case, row in read if len(row) >= settings.min_phenotypes]
    patients = Counter(case.disease for case, _ in cases)
    published = Counter(disease for disease, _ in {(case.disease, case.publication) for case, _ in cases})
    kept, dropped = dict[frozenset[int], _Patient](), dict[str, int]()
    for case, row in cases:
        few = patients[case.disease] < settings.min_patients or published[case.disease] < settings.min_publications
        reasons = {"patients of rare diseases": few, "patients with the phenotypes of another": row in kept}
        if not is_dropped(dropped, reasons):
            kept[row] = case
    if not kept:
        raise DataError("no patient is left", where=str(files["source"]), hint=f"dropped: {dropped}")
    solved = list(kept.values())
    groups, labels = [case.publication for case in solved], [(case.disease,) for case in solved]
    subgraphs = SubgraphSet.from_lists(
        list(map(sorted, kept)),
        num_nodes=graph.graph.num_nodes,
        labels=[case.disease for case in solved],
        splits=labelled_group_split(groups, labels, settings.fractions, stream(seed, "build/patients/split")),
        names=[case.id for case in solved],
        groups=groups,
        absent=[sorted(places(case.absent) - row) for row, case in kept.items()],
    )
    titles, about = [case.name for case in solved], {"hpo": release.ontology.version}
    return Draft(graph.graph, subgraphs, dropped, titles, versions=about, files={"hpo": release.files})


def _sets(name: str, read: Callable[[Path], list[Item]], settings: SetSettings, written: str = "{}") -> Builder:
    return Builder(name, settings, partial(_build_sets, name, read, written))


PUBLIC_SETS = (
    Builder("patients", PatientSettings(), _build_patients, optional=("hpo",)),
    _sets("recipes", _read_recipes, SetSettings()),
    _sets(
        "walmart",
        partial(_read_coloured, "trip_type_{}".format),
        SetSettings(min_nodes=4, max_nodes=25, classes=12),
        "product_{}",
    ),
    _sets(
        "mag10",
        partial(_read_coloured, lambda i: _VENUES[i - 1] if 1 <= i <= len(_VENUES) else f"venue_{i}"),
        SetSettings(max_nodes=20),
        "author_{}",
    ),
    _sets("dblp", _read_authors, SetSettings(min_nodes=4), "paper_{}"),
    Builder("ecoli", ReactionSettings(), _build_ecoli),
    _sets("movies", _read_films, SetSettings(min_nodes=5, classes=13, subgraphs=2_000, min_sets=2)),
)
