"""The real datasets by name: what each is built from, and how options become its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from subgnn.data.real.built import Built, Note, silent
from subgnn.data.real.co_occurrence import JoinSettings
from subgnn.data.real.em_user import EmUserSettings, build_em_user
from subgnn.data.real.hpo_diseases import DiseaseSettings
from subgnn.data.real.options import read_labels, read_options
from subgnn.data.real.patients import PatientSettings
from subgnn.data.real.phenotype_graph import PhenotypeGraphSettings
from subgnn.data.real.ppi_bp import PpiBpSettings, build_ppi_bp
from subgnn.data.real.rare_diseases import DISEASES, Kind, RareDiseaseSettings, build_rare_diseases
from subgnn.data.real.sources import ANNOTATIONS, GENE_SYMBOLS, GO, HPO, INTERACTOME, ORPHAPACKET, WORKOUTS, Source
from subgnn.errors import DataError, choices

SOURCES: dict[str, Source] = {
    "interactome": INTERACTOME,
    "go": GO,
    "annotations": ANNOTATIONS,
    "gene_symbols": GENE_SYMBOLS,
    "orphapacket": ORPHAPACKET,
    "hpo": HPO,
    "records": WORKOUTS,
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: sources by their key in :data:`SOURCES`, options and labels as texts."""

    sources: Mapping[str, Path]
    options: Mapping[str, str] = field(default_factory=dict)
    labels: Sequence[str] = ()
    seed: int = 0
    note: Note = silent


@dataclass(frozen=True, slots=True)
class Builder:
    """A dataset that can be built; ``needs`` and ``takes`` are keys of :data:`SOURCES`."""

    name: str
    needs: tuple[str, ...]
    takes: tuple[str, ...]
    run: Callable[[Request], Built]


def _ppi_bp(request: Request) -> Built:
    values = read_options({"ppi_bp": PpiBpSettings}, request.options, "ppi-bp")["ppi_bp"]
    if request.labels:
        values["labels"] = read_labels(request.labels, "")
    given = request.sources
    return build_ppi_bp(
        given["interactome"],
        given["go"],
        given["annotations"],
        gene_symbols=given.get("gene_symbols"),
        settings=PpiBpSettings(**values),
        seed=request.seed,
        note=request.note,
    )


def _rare_diseases(kind: Kind) -> Callable[[Request], Built]:
    def run(request: Request) -> Built:
        return build_rare_diseases(
            kind,
            request.sources["orphapacket"],
            hpo=request.sources.get("hpo"),
            settings=rare_disease_settings(kind, request),
            seed=request.seed,
            note=request.note,
        )

    return run


def rare_disease_settings(kind: Kind, request: Request) -> RareDiseaseSettings:
    """The settings of HPO-METAB or HPO-NEURO with some options changed; patients are simulated if ``patients`` is."""
    options = dict(request.options)
    if "patients" in options:
        options["per_disease"] = options.pop("patients")
    kinds = {
        "set": RareDiseaseSettings,
        "graph": PhenotypeGraphSettings,
        "diseases": DiseaseSettings,
        "patients": PatientSettings,
    }
    values = read_options(kinds, options, kind)
    if request.labels:
        values["diseases"]["labels"] = read_labels(request.labels, "ORPHA:")
    if values["patients"] and "per_disease" not in options:
        what = f"option '{next(iter(values['patients']))}' is one of simulated patients"
        raise DataError(what, where=kind, hint="say how many a disease has with --patients")
    return RareDiseaseSettings(
        diseases=replace(DISEASES[kind], **values["diseases"]),
        graph=PhenotypeGraphSettings(**values["graph"]),
        patients=PatientSettings(**values["patients"]) if values["patients"] else None,
        **values["set"],
    )


def _em_user(request: Request) -> Built:
    values = read_options({"users": EmUserSettings, "joining": JoinSettings}, request.options, "em-user")
    if request.labels:
        raise DataError("labels are given", where="em-user", hint="its label is the gender")
    settings = EmUserSettings(joining=JoinSettings(**values["joining"]), **values["users"])
    return build_em_user(request.sources["records"], settings=settings, seed=request.seed, note=request.note)


BUILDERS: dict[str, Builder] = {
    builder.name: builder
    for builder in (
        Builder("ppi-bp", ("interactome", "go", "annotations"), ("gene_symbols",), _ppi_bp),
        Builder("hpo-metab", ("orphapacket",), ("hpo",), _rare_diseases("hpo-metab")),
        Builder("hpo-neuro", ("orphapacket",), ("hpo",), _rare_diseases("hpo-neuro")),
        Builder("em-user", ("records",), (), _em_user),
    )
}


def build(name: str, request: Request) -> Built:
    """Build a real dataset.

    Raises:
        DataError: for an unknown name, a source that is missing or not of this dataset, or options that do not fit.
    """
    if name not in BUILDERS:
        raise DataError(f"unknown dataset '{name}'", where="name", hint=choices(name, BUILDERS))
    builder = BUILDERS[name]
    for key in request.sources:
        if key not in (*builder.needs, *builder.takes):
            accepted = ", ".join(_flag(k) for k in (*builder.needs, *builder.takes))
            raise DataError(f"{_flag(key)} is no source of it", where=name, hint=f"accepted: {accepted}")
    for key in builder.needs:
        if key not in request.sources:
            source = SOURCES[key]
            what = f"no {_flag(key)} is given: {source.what}"
            raise DataError(what, where=name, hint=f"it is published at {source.published}")
    return builder.run(request)


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"
