"""Compute recorded answers again (:mod:`subgnn.inference.records`), and say how they differ."""

import json
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from subgnn.data.formats.text import read_lines
from subgnn.data.own_times import as_rows
from subgnn.data.subgraphs import with_absent
from subgnn.errors import DataError, UserError
from subgnn.inference.explain import Explainer
from subgnn.inference.open import OpenedRun, open_run
from subgnn.inference.options import PredictOptions
from subgnn.inference.predictions import Predictions, set_limits
from subgnn.inference.records import FORMAT, checkpoint_hash
from subgnn.storage.files import parse_json

_MOST_LINES, _LONGEST = 10**6, 2**24
_CLOSE = 2e-5  # another processor differs in the last digits
_KINDS: dict[str, Any] = {"run": str, "run_hash": str, "graph": (str, NoneType), "graph_hash": str, "names_hash": str}
_KINDS |= {"as_of": (int, float, NoneType), "matched": list, "answer": dict}


def verify(
    file: Path, *, run: Path | None = None, data: Path | None = None, graph: Path | None = None
) -> list[tuple[int, str]]:
    """Compute recorded answers again, and say of each, by its line, how it differs; empty if it does not.

    Run, dataset and graph are by default those that the records name.
    """
    hint, records = "--record of predict, explain and serve writes them", []
    for number, line in read_lines(file, max_line=_LONGEST):
        where, what = f"{file}:{number}", "not a record of an answer"
        record = parse_json(line, where, hint, what=what)
        if number > _MOST_LINES or not _is_record(record):
            raise DataError(what, where=where, hint=hint)
        records.append((number, record))
    opened: dict[tuple[str, str | None], tuple[OpenedRun, str]] = {}
    found = []
    for number, record in records:
        path = str(run if run is not None else record["run"])
        place = str(graph) if graph is not None else None if data is not None else record.get("graph")
        if (path, place) not in opened:
            one = open_run(Path(path), data, graph=None if place is None else Path(place))
            opened[path, place] = one, checkpoint_hash(one.predictor)
        found.append((number, _problem(record, *opened[path, place])))
    return found


def _is_record(record: Any) -> bool:
    if not isinstance(record, dict) or record.get("record") != FORMAT:
        return False
    nodes, limits = record.get("absent", []), record.get("explanation", {"max_nodes": 0, "max_anchors": 0})
    return (
        all(isinstance(record.get(name), kinds) for name, kinds in _KINDS.items())
        and isinstance(nodes, list)
        and all(isinstance(node, str) for node in record["matched"] + nodes)
        and bool(record["matched"])
        and isinstance(record["answer"].get("coverage"), (int, float, NoneType))
        and isinstance(limits, dict)
        and all(isinstance(limits.get(name), int) for name in ("max_nodes", "max_anchors"))
    )


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
    pairs: list[tuple[Any, Any, str]] = []
    if isinstance(now, dict) and isinstance(recorded, dict) and now.keys() == recorded.keys():
        # A sentence rounds what the numbers say.
        pairs = [(now[key], recorded[key], f"{what}: {key}") for key in now if key != "sentence"]
    elif isinstance(now, list) and isinstance(recorded, list) and len(now) == len(recorded):
        pairs = [(*pair, what) for pair in zip(now, recorded, strict=True)]
    elif isinstance(now, float) and isinstance(recorded, (int, float)):
        close = abs(now - recorded) <= _CLOSE * max(1.0, abs(now))
        return "" if close else f"{what} is {now:.6g}, recorded as {recorded:.6g}"
    elif now != recorded:
        texts = [text if len(text) <= 80 else f"{text[:80]}..." for text in map(json.dumps, (now, recorded))]
        return f"{what} is {texts[0]}, recorded as {texts[1]}"
    return next(filter(None, (_difference(*pair) for pair in pairs)), "")
