"""Predict the subgraphs of tables that are sent to the server, as ``subgnn predict`` does."""

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pyarrow as pa
from pyarrow import parquet

from subgnn.data.formats.format import ReadOptions
from subgnn.errors import DataError
from subgnn.inference.answers import Query
from subgnn.inference.options import PredictOptions
from subgnn.inference.predictions import coverage_note, prediction_table
from subgnn.inference.predictor import Predictor
from subgnn.serve.limits import JSON, Limits, Refusal, encode, refuse_above
from subgnn.serve.runs import ServedRun
from subgnn.storage.files import temporary_folder
from subgnn.storage.tables import write_table

AnswerFormat = Literal["json", "csv", "tsv", "jsonl", "parquet"]
MEDIA_TYPES: dict[AnswerFormat, str] = {
    "json": JSON,
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
_MAX_LISTED = 1000
_MAX_UNPACKED = 10  # times the limit of a body
_SPARE_LINES = 1_000  # titles, comments and blank lines
_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_ENDING = re.compile(r"(\.[A-Za-z0-9]{1,8}){1,2}$")


def accepted_format(accept: str) -> AnswerFormat:
    """The format that an Accept header names first; JSON if it names none."""
    formats = {media.partition(";")[0]: form for form, media in MEDIA_TYPES.items()}
    named = (kind.partition(";")[0].strip().lower() for kind in accept.split(","))
    return next((formats[kind] for kind in named if kind in formats), "json")


def answer_table(
    run: ServedRun,
    name: str,
    content: bytes,
    reading: Callable[[], ReadOptions],
    form: AnswerFormat,
    limits: Limits,
    options: PredictOptions,
    *,
    excel_safe: bool = False,
) -> tuple[bytes, int]:
    """The predictions for a table, the content of a file of this name, encoded, and how many there are."""
    notes: list[str] = []
    _check_upload(content, limits)
    query = _read(run.predictor, name, content, reading, notes)
    matched = query.matched
    refuse_above(limits.table_subgraphs, "the table", len(query), "subgraphs")
    refuse_above(limits.table_nodes, "the table", len(query.members.nodes.values), "nodes")
    if matched.unknown and not query.drops:
        hint = "correct them, or leave them out with unknown=drop"
        raise Refusal(422, matched.unknown_text(), hint=hint, nodes=list(matched.unknown)[:_MAX_LISTED])
    table = prediction_table(run.predictor, query, options, drift=run.drift, records=run.records)
    if options.coverage is not None and (note := coverage_note(run.predictor)):
        notes.append(note)
    if form != "json":
        file = io.BytesIO()
        write_table(file, form, table.columns, table.parts, excel_safe=excel_safe)
        return file.getvalue(), len(query)
    cells = (row for part in table.parts for row in zip(*part, strict=True))
    unknown = [
        {"given": text, "subgraphs": count, "nearest": matched.nearest.get(text)}
        for text, count in list(matched.unknown.items())[:_MAX_LISTED]
    ]
    found = {
        "run": run.name,
        "task": run.predictor.spec.task,
        "columns": [column.title for column in table.columns],
        "rows": [[round(cell, 6) if isinstance(cell, float) else cell for cell in row] for row in cells],
        "num_unknown": len(matched.unknown),
        "unknown": unknown,
        "notes": notes,
    }
    return encode(found), len(query)


def _check_upload(content: bytes, limits: Limits) -> None:
    """Refuse a table that would take much time or memory to read, without reading it."""
    most, most_bytes = limits.table_nodes, _MAX_UNPACKED * limits.body_bytes
    rows = unpacked = 0
    try:
        if content.startswith(b"PAR1"):
            rows = parquet.read_metadata(pa.BufferReader(content)).num_rows
        elif content.startswith(b"PK"):  # a workbook
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                unpacked = sum(part.file_size for part in packed.infolist())
        else:
            if content.startswith(b"\x1f\x8b"):
                content = zlib.decompressobj(31).decompress(content, most_bytes + 1)
                unpacked = len(content)
            rows = max(content.count(b"\n"), content.count(b"\r"))
    except (pa.ArrowException, zipfile.BadZipFile, zlib.error, OSError, EOFError):
        return  # damaged: reading it tells how
    if rows > most + _SPARE_LINES:
        raise Refusal(422, f"the table has {rows:,} rows", hint=f"accepted: at most {most:,}")
    if unpacked > most_bytes:
        hint = f"accepted: at most {most_bytes:,}"
        raise Refusal(422, f"the table unpacks to more than {most_bytes:,} bytes", hint=hint)


def _read(predictor: Predictor, name: str, body: bytes, reading: Callable[[], ReadOptions], notes: list[str]) -> Query:
    """Read a table from a temporary file, which is removed at once; its path is not in messages."""
    ending = _ENDING.search(name)
    with temporary_folder("subgnn-table") as folder:
        path = folder / f"table{ending[0] if ending else ''}"
        path.write_bytes(body)
        try:
            options = reading()
            options_of_all = replace(options, unknown="drop", on_note=notes.append)
            query = Query.read(path, predictor.graph, options_of_all, dated=predictor.as_of_step is not None)
        except DataError as error:
            # An option of the command line is a parameter of the request.
            where, hint = (
                _OPTION.sub(lambda option: option[1].replace("-", "_"), text) for text in (error.where, error.hint)
            )
            where = where.replace(str(path), name)
            raise Refusal(422, f"{where}: {error.what}" if where else error.what, hint=hint) from None
        notes[:] = [note.replace(str(path), name) for note in notes]
        return replace(query, drops=options.unknown == "drop")
