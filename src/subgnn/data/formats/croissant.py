"""Croissant 1.0 metadata (mlcommons.org/croissant) of a dataset folder, by which other tools read its files."""

import re
from pathlib import Path
from typing import Any

from subgnn.data.dataset import Dataset
from subgnn.data.describe import task_line
from subgnn.data.formats.folder import EDGES, NODES, SUBGRAPHS
from subgnn.storage.files import file_digest, write_json

CROISSANT = "croissant.json"
_TERMS = (
    "citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes isLiveDataset "
    "jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source "
    "subField transform"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
_FORMATS = {".tsv": "text/tab-separated-values", ".npy": "application/octet-stream", ".json": "application/json"}
_TEXT, _INTEGER, _FLOAT = "sc:Text", "sc:Integer", "sc:Float"


def write_croissant(dataset: Dataset, folder: Path) -> None:
    """Describe the files of a dataset folder in its ``croissant.json``."""
    files = sorted(path for path in folder.iterdir() if path.name != CROISSANT)
    edges = next(path.name for path in files if path.name.removesuffix(".gz") == EDGES)
    card, graph = dataset.card, dataset.graph
    ends = [
        _field("edges/source", _INTEGER, edges, regex=r"^(\d+)\s"),
        _field("edges/target", _INTEGER, edges, regex=r"^\d+\s+(\d+)"),
    ]
    if graph.weights is not None:
        ends.append(_field("edges/weight", _FLOAT, edges, regex=r"^\d+\s+\d+\s+(\S+)"))
    rows = [
        _field("subgraphs/nodes", _INTEGER, SUBGRAPHS, regex=r"^([^\t]*)", separator="-") | {"repeated": True},
        _field("subgraphs/label", _TEXT, SUBGRAPHS, regex=r"^[^\t]*\t([^\t]*)"),
        _field("subgraphs/split", _TEXT, SUBGRAPHS, regex=r"^[^\t]*\t[^\t]*\t(\w+)"),
    ]
    about = f"Groups of nodes with their labels and splits; {dataset.subgraphs.task}"
    records = [_records("edges", "Pairs of nodes, numbered from 0", ends), _records("subgraphs", about, rows)]
    if graph.names is not None:
        names = [_field(f"nodes/{name}", _TEXT, NODES, column=name) for name in graph.names.columns]
        fields = [_field("nodes/id", _INTEGER, NODES, column="id"), *names]
        records.append(_records("nodes", "Names and attributes of nodes", fields))
    source = str(card.get("source", ""))
    optional = {"license": card.get("licence"), "url": source if source.startswith("http") else ""}
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": re.sub(r"[^\w.-]+", "_", dataset.name, flags=re.ASCII) or "dataset",
        "description": str(card.get("note") or f"A graph and subgraphs of it; {task_line(dataset.subgraphs)}."),
        **{key: str(value) for key, value in optional.items() if value},
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": path.name,
                "name": path.name,
                "contentUrl": path.name,
                "contentSize": f"{path.stat().st_size} B",
                # Edge lists and subgraphs have no header, so they are read as lines.
                "encodingFormat": "text/plain" if path.name == SUBGRAPHS else _FORMATS.get(path.suffix, "text/plain"),
                "sha256": file_digest(path),
            }
            for path in files
        ],
        "recordSet": records,
    }
    write_json(content, folder / CROISSANT)


def _records(name: str, description: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": description, "field": fields}


def _field(name: str, kind: str, file: str, *, column: str = "", **transforms: str) -> dict[str, Any]:
    extract = {"column": column} if column else {"fileProperty": "lines"}
    source: dict[str, Any] = {"fileObject": {"@id": file}, "extract": extract}
    if transforms:
        source["transform"] = [{key: value} for key, value in transforms.items()]
    return {"@type": "cr:Field", "@id": name, "name": name, "dataType": kind, "source": source}
