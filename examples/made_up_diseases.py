"""Made-up sources of a small HPO-METAB, in the layouts of the real ones, and the dataset that is built of them.

    python examples/made_up_diseases.py FOLDER

This is not medical data. Phenotypes, diseases, genes and classes are invented and drawn from a fixed seed; the names
only have to be readable. examples/rare_disease.py uses them where no real dataset is given.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from subgnn.data.dataset import Dataset
from subgnn.data.formats.folder import write_folder
from subgnn.lab.datasets.rare_diseases import RareDiseaseSettings, build_rare_diseases
from subgnn.parallel.progress import ignore

ORGANS = ("muscle", "nerve", "heart", "liver", "bone", "skin", "eye", "kidney")
SIGNS = ("Small", "Large", "Pale", "Stiff", "Slow", "Brittle", "Swollen", "Patchy")
# Classes share organs, so that no organ alone gives the class away.
CLASSES = {
    "Ferrous": ("muscle", "nerve", "heart"),
    "Cuprous": ("heart", "liver", "bone"),
    "Argentic": ("nerve", "skin", "eye"),
}
PER_CLASS = 30
MADE_UP = "made up, not medical data"
_NOTE = "Invented phenotypes, genes, diseases and classes, built as HPO-METAB is."

_FIRST_CLASS, _FIRST_DISEASE = 99_000_000, 99_001_000  # codes that nothing real has
_ROOT = "HP:0000118"
_COLUMNS = (
    "database_id disease_name qualifier hpo_id reference evidence onset frequency sex modifier aspect biocuration"
)


@dataclass(frozen=True, slots=True)
class _Disease:
    code: int
    kind: str
    phenotypes: tuple[str, ...]


def _pick(rng: random.Random, items: Sequence[str], count: int) -> list[str]:
    """Some of the items; from random() alone, which no release of Python changes."""
    keys = {item: rng.random() for item in items}
    return sorted(items, key=keys.__getitem__)[:count]


def _term(organ: int, sign: int | None = None) -> str:
    return f"HP:9{organ:03d}{0 if sign is None else sign + 1:03d}"


def _diseases(rng: random.Random) -> list[_Disease]:
    """Five to seven phenotypes of the organs of a disease's class, and one of any."""
    everything = [_term(o, s) for o in range(len(ORGANS)) for s in range(len(SIGNS))]
    found = []
    for i in range(PER_CLASS * len(CLASSES)):
        kind = list(CLASSES)[i % len(CLASSES)]
        own = [_term(ORGANS.index(organ), s) for organ in CLASSES[kind] for s in range(len(SIGNS))]
        chosen = {*_pick(rng, own, 5 + i % 3), *_pick(rng, everything, 1)}
        found.append(_Disease(_FIRST_DISEASE + i, kind, tuple(sorted(chosen))))
    return found


def _ontology() -> str:
    """Phenotypes under organs under the root, as OBO."""
    terms = [("HP:0000001", "All", ""), (_ROOT, "Phenotypic abnormality", "HP:0000001")]
    for o, organ in enumerate(ORGANS):
        terms.append((_term(o), f"Abnormal {organ}", _ROOT))
        terms += [(_term(o, s), f"{sign} {organ}", _term(o)) for s, sign in enumerate(SIGNS)]
    stanzas = [
        f"\n[Term]\nid: {id_}\nname: {name}\n" + (f"is_a: {above}\n" if above else "") for id_, name, above in terms
    ]
    return f"format-version: 1.2\ndata-version: {MADE_UP}\n" + "".join(stanzas)


def _packet(code: str, label: str, *, type_: str, parent: str | None = None) -> str:
    """An entry of the classification of diseases."""
    entry = {"ORPHAcode": code, "Label": label, "version": MADE_UP, "DisorderType": {"value": type_}}
    above = {} if parent is None else {"Parents": [{"Parent": [{"ORPHAcode": parent, "Label": "above"}]}]}
    return json.dumps({"Orphapacket": {**entry, **above}})


def write_sources(folder: Path) -> tuple[Path, Path]:
    """Write a release of the ontology and a classification of diseases, and return their folders."""
    diseases = _diseases(random.Random(0))
    hpo, orphapacket = folder / "hpo", folder / "orphapacket"
    rows = [_COLUMNS.replace(" ", "\t")]
    genes = ["hpo_id\thpo_name\tncbi_gene_id\tgene_symbol\tdisease_id"]
    heads = {kind: str(_FIRST_CLASS + i) for i, kind in enumerate(CLASSES)}
    packets = {code: _packet(code, kind, type_="Category") for kind, code in heads.items()}
    for disease in diseases:
        id_, name = f"ORPHA:{disease.code}", f"Made-up disease {disease.code}"
        rows += [f"{id_}\t{name}\t\t{term}\t\t\t\t\t\t\tP\t" for term in disease.phenotypes]
        if disease.code // len(CLASSES) % 3 == 0:  # of the others no gene is known
            genes += [f"{term}\t\t{disease.code}\tGENE{disease.code}\t{id_}" for term in disease.phenotypes]
        packets[str(disease.code)] = _packet(str(disease.code), name, type_="Disease", parent=heads[disease.kind])
    files = {
        hpo / "hp.obo": _ontology(),
        hpo / "phenotype.hpoa": "\n".join(rows) + "\n",
        hpo / "phenotype_to_genes.txt": "\n".join(genes) + "\n",
        **{orphapacket / f"ORPHApacket_{code}.json": text for code, text in packets.items()},
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return hpo, orphapacket


def build_made_up(folder: Path) -> Path:
    """Build the dataset with the rules of HPO-METAB, but with classes of our own, and return its folder."""
    hpo, orphapacket = write_sources(folder / "sources")
    settings = RareDiseaseSettings({kind: str(_FIRST_CLASS + i) for i, kind in enumerate(CLASSES)}, multi_label=False)
    draft = build_rare_diseases("hpo-metab", {"orphapacket": orphapacket, "hpo": hpo}, settings, 0, ignore)
    card = {"name": "made-up diseases", "source": MADE_UP, "licence": "none needed", "note": _NOTE}
    dataset = Dataset(name="made-up diseases", graph=draft.graph, subgraphs=draft.subgraphs, card=card)
    write_folder(dataset, folder / "made_up", overwrite=True, subgraph_titles=draft.titles)
    return folder / "made_up"


if __name__ == "__main__":
    print(build_made_up(Path(sys.argv[1])))
