"""Real datasets, built from the files that their sources publish."""

from __future__ import annotations

from subgnn.errors import DataError, choices
from subgnn.lab.datasets.builder import Builder, BuiltDataset, Request
from subgnn.lab.datasets.em_user import EM_USER
from subgnn.lab.datasets.ppi_bp import PPI_BP
from subgnn.lab.datasets.rare_diseases import HPO_METAB, HPO_NEURO
from subgnn.lab.datasets.sources import SOURCES

BUILDERS: dict[str, Builder] = {builder.name: builder for builder in (PPI_BP, HPO_METAB, HPO_NEURO, EM_USER)}


def build(name: str, request: Request) -> BuiltDataset:
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
            raise DataError(f"{_flag(key)} is not a source of it", where=name, hint=f"accepted: {accepted}")
    for key in builder.needs:
        if key not in request.sources:
            source = SOURCES[key]
            what = f"no {_flag(key)} is given: {source.what}"
            raise DataError(what, where=name, hint=f"it is published at {source.published}")
    return builder.run(request)


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"
