"""Compute recorded answers again (:mod:`subgnn.inference.records`), and say how they differ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from subgnn.data.own_times import as_rows
from subgnn.data.subgraphs import with_absent
from subgnn.errors import DataError, UserError
from subgnn.inference.explain import Explainer
from subgnn.inference.open import OpenedRun, open_run
from subgnn.inference.options import PredictOptions
from subgnn.inference.predictions import Predictions, set_limits
from subgnn.inference.records import FORMAT, checkpoint_hash

_MOST_LINES, _LONGEST = 10**6, 2**24
_CLOSE = 2e-5  # another processor differs in the last digits
_TEXTS = ("run", "run_hash", "graph_hash", "names_hash")


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """A record by its line; ``problem`` says how its answer differs, empty if it does not."""

    line: int
    problem: str = ""


def verify(
    file: Path, *, run: Path | None = None, data: Path | None = None, graph: Path | None = None
) -> list[CheckedRecord]:
    """Compute the answers of a file of records again, and compare them with those recorded.

    Args:
        run, data, graph: the run, its dataset and its graph; by default those that the records name.
    """
    opened: dict[tuple[str, str | None], tuple[OpenedRun, str]] = {}
    found = []
    for number, record in _read(file):
        path = str(run if run is not None else record["run"])
        place = str(graph) if graph is not None else None if data is not None else record.get("graph")
        if (path, place) not in opened:
            one = open_run(Path(path), data, graph=None if place is None else Path(place))
            opened[path, place] = one, checkpoint_hash(one.predictor)
        found.append(CheckedRecord(number, _problem(record, *opened[path, place])))
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
                right = isinstance(record, dict) and record.get("record") == FORMAT
                right = right and all(isinstance(record.get(name), str) for name in _TEXTS)
                right = right and isinstance(record.get("graph"), (str, type(None)))
                right = right and isinstance(record.get("as_of"), (int, float, type(None)))
                right = right and isinstance(record.get("matched"), list) and bool(record["matched"])
                right = right and isinstance(record.get("absent", []), list)
                right = right and all(isinstance(node, str) for node in record["matched"] + record.get("absent", []))
                right = right and isinstance(record.get("answer"), dict)
                right = right and isinstance(record["answer"].get("coverage"), (int, float, type(None)))
                limits = record.get("explanation", {"max_nodes": 0, "max_anchors": 0}) if right else None
                if not isinstance(limits, dict) or not all(
                    isinstance(limits.get(name), int) for name in ("max_nodes", "max_anchors")
                ):
                    raise ValueError("it is not a record")
                found.append((number, record))
    except OSError as error:
        raise DataError(str(error.strerror or error).lower(), where=str(file), hint="check the path") from None
    except (ValueError, RecursionError) as error:
        where = f"{file}:{len(found) + 1}"
        hint = "--record of predict, explain and serve writes them"
        raise DataError(f"not a record of an answer ({error})", where=where, hint=hint) from None
    return found


def _problem(record: dict[str, Any], opened: OpenedRun, run_hash: str) -> str:
    """How an answer differs from the recorded one; empty if it does not."""
    predictor, recorded = opened.predictor, record["answer"]
    graph = predictor.graph
    if (graph.content_hash, graph.names_hash) != (record["graph_hash"], record["names_hash"]):
        return "the graph is another one; give that of the record with --graph or --data"
    if run_hash != record["run_hash"]:
        return "the run is another one, or has changed"
    as_of, by_class = record["as_of"], bool(recorded.get("coverage_by_class"))
    try:
        options = PredictOptions(coverage=recorded.get("coverage"), coverage_by_class=by_class)
        nodes = predictor.rows([record["matched"]])
        if record.get("absent"):
            nodes = with_absent(nodes, predictor.rows([record["absent"]]))
        nodes = as_rows(nodes, None if as_of is None else np.array([as_of], np.float64))
        scores, limits = predictor.probabilities(nodes), set_limits(predictor, options)
        (answer,) = Predictions.of(predictor, nodes, scores, limits).answers(predictor, options)
        problem = _difference(answer, recorded, "answer")
        if "explanation" in record and not problem:
            bounds = {name: record["explanation"][name] for name in ("max_nodes", "max_anchors")}
            (found,) = Explainer.of_run(opened, **bounds).explain(nodes)
            problem = _difference(found.to_json() | bounds, record["explanation"], "explanation")
    except UserError as error:
        return str(error)
    return problem


def _difference(now: Any, recorded: Any, what: str) -> str:
    """Where two values of JSON differ by more than rounding, in words; empty if they do not."""
    if isinstance(now, dict) and isinstance(recorded, dict) and now.keys() == recorded.keys():
        # A sentence rounds what the numbers say.
        pairs = [(now[key], recorded[key], f"{what}: {key}") for key in now if key != "sentence"]
        return next(filter(None, (_difference(*pair) for pair in pairs)), "")
    if isinstance(now, list) and isinstance(recorded, list) and len(now) == len(recorded):
        pairs = [(*pair, what) for pair in zip(now, recorded, strict=True)]
        return next(filter(None, (_difference(*pair) for pair in pairs)), "")
    if isinstance(now, float) and isinstance(recorded, (int, float)):
        if abs(now - recorded) <= _CLOSE * max(1.0, abs(now)):
            return ""
        return f"{what} is {now:.6g}, recorded as {recorded:.6g}"
    return "" if now == recorded else f"{what} is {_short(now)}, recorded as {_short(recorded)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
