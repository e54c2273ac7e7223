"""Records of answers that can be kept and computed again: a line of JSON for each.

A record has the run and its hash, the hash of the graph, the time, the subgraph as it was given and as it was matched,
the answer with its threshold, and the versions. :func:`verify` computes the answers again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.own_times import as_rows, times_of
from subgnn.data.subgraphs import absent_rows, with_absent
from subgnn.errors import DataError, UserError
from subgnn.inference.open import OpenedRun, open_run
from subgnn.inference.predictor import Predictor, names_of
from subgnn.models.checkpoint import pack
from subgnn.ragged import Ragged
from subgnn.storage.files import json_digest
from subgnn.task import task_of
from subgnn.versions import versions

Row = tuple[NDArray[np.int32], NDArray[np.float32], float | None, NDArray[np.int32]]
_FORMAT = 1
_MOST_LINES, _LONGEST = 10**6, 2**20
_DIGITS, _CLOSE = 6, 2e-5  # another processor differs in the last digits


def checkpoint_hash(predictor: Predictor) -> str:
    """SHA-256 of a run's model as it answers: weights, anchors and settings."""
    arrays, content = pack(predictor.checkpoint)
    digest = hashlib.sha256(json_digest(content).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def as_records(nodes: Ragged, scores: NDArray[np.float32]) -> Iterator[Row]:
    """Subgraphs one by one: nodes, probabilities, the time as of which each was measured, if any, and absent nodes."""
    times, absent = times_of(nodes), absent_rows(nodes)
    for i in range(len(nodes)):
        yield nodes[i], scores[i], None if times is None else float(times[i]), absent[i]


def append_records(
    file: Path,
    run: Path,
    opened: OpenedRun,
    given: Sequence[Sequence[str]],
    rows: Sequence[Row],
) -> None:
    """Append a record for each subgraph.

    Args:
        given: the nodes of each subgraph as they were written.
        rows: of :func:`as_records`.
    """
    predictor = opened.predictor
    titles = task_of(predictor.spec.task).columns(predictor.spec.classes)
    thresholds = np.atleast_1d(np.asarray(predictor.thresholds, np.float64)).tolist()
    about = {
        "record": _FORMAT,
        "run": str(run.resolve()),
        "run_hash": checkpoint_hash(predictor),
        "graph_hash": predictor.graph.content_hash,
        "names_hash": predictor.graph.names_hash,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "thresholds": [None if value != value else value for value in thresholds],
        "versions": versions(),
    }
    lines = []
    for texts, (nodes, scores, as_of, absent) in zip(given, rows, strict=True):
        numbers = [round(float(value), _DIGITS) for value in scores]
        answer = {"label": predictor.label_text(scores), "scores": dict(zip(titles, numbers, strict=True))}
        matched = list(names_of(predictor.graph, nodes.tolist()))
        of_input: dict[str, Any] = {"given": list(texts), "matched": matched, "as_of": as_of}
        of_input |= {"absent": list(names_of(predictor.graph, absent.tolist()))} if len(absent) else {}
        lines.append(json.dumps({**about, **of_input, "answer": answer}))
    with file.open("a", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """A record by its line; ``problem`` says how its answer differs, empty if it does not."""

    line: int
    problem: str = ""


def verify(
    file: Path, *, run: Path | None = None, data: Path | None = None, graph: Path | None = None
) -> list[CheckedRecord]:
    """Compute the answers of a file of records again, and compare them with those recorded."""
    records = _read(file)
    opened: dict[str, tuple[Predictor, str]] = {}
    found = []
    for number, record in records:
        path = str(run if run is not None else record["run"])
        if path not in opened:
            predictor = open_run(Path(path), data, graph=graph).predictor
            opened[path] = predictor, checkpoint_hash(predictor)
        found.append(CheckedRecord(number, _problem(record, *opened[path])))
    return found


def _read(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """The records of a file by their lines, with all types checked."""
    found = []
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if number > _MOST_LINES or len(line) > _LONGEST:
                    raise ValueError("it is too large")
                record = json.loads(line)
                texts = {"run", "run_hash", "graph_hash", "names_hash"}
                right = isinstance(record, dict) and record.get("record") == _FORMAT
                right = right and all(isinstance(record.get(name), str) for name in texts)
                right = right and isinstance(record.get("as_of"), (int, float, type(None)))
                right = right and isinstance(record.get("matched"), list) and bool(record["matched"])
                right = right and isinstance(record.get("absent", []), list)
                right = right and all(isinstance(node, str) for node in record["matched"] + record.get("absent", []))
                answer = record.get("answer") if right else None
                if not isinstance(answer, dict) or not isinstance(answer.get("scores"), dict):
                    raise ValueError("it is not a record")
                if not all(isinstance(value, (int, float)) for value in answer["scores"].values()):
                    raise ValueError("its scores are not numbers")
                found.append((number, record))
    except OSError as error:
        raise DataError(str(error.strerror or error).lower(), where=str(file), hint="check the path") from None
    except (ValueError, RecursionError) as error:
        where = f"{file}:{len(found) + 1}"
        hint = "subgnn predict --record writes them"
        raise DataError(f"not a record of an answer ({error})", where=where, hint=hint) from None
    return found


def _problem(record: dict[str, Any], predictor: Predictor, run_hash: str) -> str:
    """How an answer differs from the recorded one; empty if it does not."""
    graph = predictor.graph
    if (graph.content_hash, graph.names_hash) != (record["graph_hash"], record["names_hash"]):
        return "the graph is another one; give that of the record with --graph or --data"
    if run_hash != record["run_hash"]:
        return "the run is another one, or has changed"
    try:
        nodes = predictor.rows([record["matched"]])
        if record.get("absent"):
            nodes = with_absent(nodes, predictor.rows([record["absent"]]))
    except UserError as error:
        return str(error)
    as_of = record.get("as_of")
    (scores,) = predictor.probabilities(as_rows(nodes, None if as_of is None else np.array([as_of], np.float64)))
    label, recorded = predictor.label_text(scores), record["answer"]
    titles = task_of(predictor.spec.task).columns(predictor.spec.classes)
    now = dict(zip(titles, map(float, scores), strict=True))
    if label != recorded.get("label"):
        return f"the label is {label!r}, recorded as {recorded.get('label')!r}"
    if now.keys() != recorded["scores"].keys():
        return "the classes are others"
    size = max(1.0, *map(abs, now.values()))
    away = {name: abs(now[name] - value) for name, value in recorded["scores"].items()}
    name = max(away, key=away.__getitem__)
    if not away[name] <= _CLOSE * size:
        return f"the score of {name!r} is {now[name]:.6g}, recorded as {recorded['scores'][name]:.6g}"
    return ""
