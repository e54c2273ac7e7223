"""HPO-METAB and HPO-NEURO: phenotypes of a rare disease, labelled by the kind of disease (paper, appendix B).

Labels are places in Orphanet's classification, which is read from ORPHApacket JSON. Each entry has a code, a disorder
type, its parents in the classification, and the OMIM entries it is mapped to with how they relate: ``E`` exact,
``BTNT`` the ORPHA code is the broader of the two, ``NTBT`` the narrower.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from subgnn.config.files import Count
from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError, excerpt
from subgnn.lab.datasets.builder import ARCHIVES, Builder, Draft, Files, Fractions, OnStep, is_dropped, json_files
from subgnn.lab.datasets.hpo import HpoRelease, PhenotypeGraph, build_phenotype_graph, read_hpo
from subgnn.rng import stream
from subgnn.storage.files import parse_json


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

    @property
    def is_subtype(self) -> bool:
        """Whether this is a form of its parent."""
        return self.type in ("Clinical subtype", "Etiological subtype", "Histopathological subtype")


@dataclass(frozen=True, slots=True)
class Orphanet:
    """Entries by code."""

    disorders: dict[str, Disorder]
    version: str = ""

    def below(self, root: str) -> set[str]:
        """Codes of everything under an entry, itself included."""
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
    for number, (name, content) in enumerate(json_files(path), 1):
        where = f"{path}: record {number} ({name})"
        entry, inside = _field(parse_json(content, where, ARCHIVES), "Orphapacket", where), f"{where}: Orphapacket"
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
        raise DataError("it has no ORPHApacket JSON", where=str(path), hint=ARCHIVES)
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


_MAPPINGS = ("E", "BTNT")  # how an OMIM entry relates to the Orphanet entries whose labels it takes


@dataclass(frozen=True, slots=True)
class RareDiseaseSettings:
    """Which diseases become subgraphs, what their labels are, and the edges of the graph."""

    labels: Mapping[str, str]  # the Orphanet entry whose descendants have each label
    multi_label: bool  # keep all labels of a disease; otherwise one with several is dropped
    min_phenotypes: Count = 3  # of a disease, that are in the graph
    min_shared_genes: Count = 2  # causal genes that two phenotypes with an edge have in common
    fractions: Fractions = (0.8, 0.1, 0.1)  # all forms of a disorder are in one part


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
    seen: set[frozenset[int]] = set()
    found, dropped = [], dict[str, int]()
    for id_, disease in sorted(release.diseases.items()):
        nodes, entries = graph.places(disease.phenotypes), codes.get(id_, ())
        labels = tuple(label for label, under in below.items() if not under.isdisjoint(entries))
        reasons = {
            "diseases not mapped to a disorder": not entries,
            "diseases under no label": not labels,
            "diseases under several labels": len(labels) > 1 and not settings.multi_label,
            "diseases with too few phenotypes": len(nodes) < settings.min_phenotypes,
            "diseases with the phenotypes of another": nodes in seen,
        }
        if not is_dropped(dropped, reasons):
            seen.add(nodes)
            found.append(LabelledDisease(id_, disease.name, nodes, labels, f"ORPHA:{groups[entries[0]]}"))
    return found, dropped


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
    pairs = [(c, above) for c, d in disorders.items() if d.is_subtype for above in d.parents if above in disorders]
    pairs += [(together[0], other) for together in codes.values() for other in together[1:]]
    ends = np.array([(place[a], place[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    links = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(known), len(known)))
    group = connected_components(links, directed=False)[1]
    first = np.unique(group, return_index=True)[1]  # the smallest code comes first
    return {code: known[first[group[place[code]]]] for code in known}


def build_rare_diseases(name: str, files: Files, settings: RareDiseaseSettings, seed: int, on_step: OnStep) -> Draft:
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
    groups, multi_label = [d.group for d in diseases], settings.multi_label
    rng = stream(seed, f"build/{name}/split")
    splits = labelled_group_split(groups, [d.labels for d in diseases], settings.fractions, rng)
    subgraphs = SubgraphSet.from_lists(
        [sorted(d.nodes) for d in diseases],
        num_nodes=graph.graph.num_nodes,
        labels=[d.labels if multi_label else d.labels[0] for d in diseases],
        splits=splits,
        names=[d.id for d in diseases],
        groups=groups,
        task="multi-label" if multi_label else None,
    )
    return Draft(
        graph.graph,
        subgraphs,
        {**{f"annotations ({k})": v for k, v in release.dropped.items()}, **dropped},
        titles=[d.name for d in diseases],
        versions={"hpo": release.ontology.version, "orphapacket": orphanet.version},
        files={"hpo": release.files},
    )


def labelled_group_split(
    groups: Sequence[Hashable], labels: Sequence[Sequence[str]], fractions: Fractions, rng: np.random.Generator
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
    Builder(name, RareDiseaseSettings(labels, multi_label), partial(build_rare_diseases, name), optional=("hpo",))
    for name, labels, multi_label in (("hpo-metab", _METABOLIC, False), ("hpo-neuro", _NEUROLOGICAL, True))
)
