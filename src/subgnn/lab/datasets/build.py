"""Build real datasets from the files that their sources publish."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from subgnn.config.files import parse_options
from subgnn.data.dataset import Dataset
from subgnn.data.splits import split_sizes
from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError, choices
from subgnn.lab.datasets.builder import SOURCES, Builder, Files, OnStep
from subgnn.lab.datasets.ppi_bp import PPI_BP
from subgnn.lab.datasets.public_sets import PUBLIC_SETS
from subgnn.lab.datasets.rare_diseases import HPO_METAB, HPO_NEURO
from subgnn.parallel.progress import ignore
from subgnn.storage.files import file_digest
from subgnn.versions import __version__

BUILDERS: dict[str, Builder] = {builder.name: builder for builder in (PPI_BP, HPO_METAB, HPO_NEURO, *PUBLIC_SETS)}


def build(
    name: str, files: Files, *, options: Mapping[str, Any] | None = None, seed: int = 0, on_step: OnStep = ignore
) -> tuple[Dataset, Sequence[str] | None]:
    """Build a dataset from files by key, and titles of its subgraphs, which are the second column of their names.

    Its card states sources, licences, settings (``options``) and counts.
    """
    if name not in BUILDERS:
        raise DataError(f"unknown dataset '{name}'", where="name", hint=choices(name, BUILDERS))
    builder = BUILDERS[name]
    flags = {key: f"--{key.replace('_', '-')}" for key in {**builder.sources, **files}}
    for key in files:
        if key not in builder.sources:
            hint = f"accepted: {', '.join(flags[known] for known in builder.sources)}"
            raise DataError(f"{flags[key]} is not one of its sources", where=name, hint=hint)
    for key, source in builder.sources.items():
        if key not in files and key not in builder.optional:
            what = f"{flags[key]} is missing: {source['what']}"
            raise DataError(what, where=name, hint=f"it is published at {source['published']}")
    settings = replace(builder.settings, **parse_options({"": type(builder.settings)}, options or {}, name)[""])
    split_sizes(len(SPLITS), settings.fractions)  # refuses shares that do not sum to 1
    draft = builder.build(files, settings, seed, on_step)
    graph, subgraphs = draft.graph, draft.subgraphs
    splits = {split: len(subgraphs.indices(split)) for split in SPLITS}
    for split, count in splits.items():
        if not count:
            what = f"none of the {len(subgraphs)} subgraphs is in split '{split}'"
            raise DataError(what, where=name, hint="use larger sources or different fractions")
    sources = []
    for key, source in builder.sources.items():
        if read := draft.files.get(key) or ((files[key],) if key in files else ()):
            digests = {path.name: file_digest(path) if path.is_file() else "a folder" for path in read}
            sources.append({**source, "version": draft.versions.get(key) or "version not stated", "files": digests})
    counts = {"nodes": graph.num_nodes, "edges": graph.num_edges, "subgraphs": len(subgraphs)}
    card = {
        "name": name,
        "source": "; ".join(f"{one['what']}, {one['version']} ({one['published']})" for one in sources),
        "licence": "; ".join(f"{one['what']}: {one['licence']}" for one in sources),
        "note": SOURCES["notes"][name].format(**asdict(settings)),
        "built_with": f"subgnn {__version__}",
        "seed": seed,
        "settings": asdict(settings),
        "sources": sources,
        "counts": {**counts, "labels": subgraphs.label_counts(), "splits": splits},
        "dropped": dict(draft.dropped),
    }
    return Dataset(name=name, graph=graph, subgraphs=subgraphs, card=card), draft.titles
