"""Records of answers that can be kept and computed again: a line of JSON for each.

A record has the run and its hash, the hash of the graph, the time, the subgraph as it was given and as it was matched,
the answer with its set of labels, the thresholds, the explanation that was shown, and the versions.
:mod:`subgnn.inference.verify` computes answers again.
"""

import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from subgnn.data.own_times import times_of
from subgnn.data.subgraphs import absent_rows
from subgnn.errors import DataError
from subgnn.inference.predictor import Predictor, names_of
from subgnn.models.checkpoint import pack
from subgnn.ragged import Ragged, hashed
from subgnn.storage.files import json_digest
from subgnn.versions import versions

FORMAT = 2
_WRITING = threading.Lock()


def checkpoint_hash(predictor: Predictor) -> str:
    """SHA-256 of a run's model as it answers: weights, anchors and settings."""
    arrays, content = pack(predictor.checkpoint)
    return hashed(json_digest(content), sorted(arrays.items())).hexdigest()


class Records:
    """A file of lines about answers of a run, also from several threads; ``graph`` is the place of another graph."""

    def __init__(self, file: Path, run: Path, predictor: Predictor, *, graph: Path | None = None) -> None:
        self._file, self._predictor = file, predictor
        thresholds = np.atleast_1d(np.asarray(predictor.thresholds, np.float64)).tolist()
        self._about = {
            "record": FORMAT,
            "run": str(run.resolve()),
            "run_hash": checkpoint_hash(predictor),
            "graph": None if graph is None else str(graph.resolve()),
            "graph_hash": predictor.graph.content_hash,
            "names_hash": predictor.graph.names_hash,
            "thresholds": [None if value != value else value for value in thresholds],
            "versions": versions(),
        }
        self.add([], Ragged.from_rows([]), [])  # refuses a file that cannot be written before anything is computed

    def add(
        self,
        given: Sequence[Sequence[Any]],
        nodes: Ragged,
        answers: Sequence[dict[str, Any]],
        explanations: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Append a line for each subgraph: its nodes as given and matched, its answer, and its explanation if shown."""
        times, absent, now = times_of(nodes), absent_rows(nodes), datetime.now(UTC).isoformat(timespec="seconds")
        lines = []
        for i, (texts, answer) in enumerate(zip(given, answers, strict=True)):
            matched = list(names_of(self._predictor.graph, nodes[i].tolist()))
            record: dict[str, Any] = {**self._about, "time": now, "given": list(map(str, texts)), "matched": matched}
            record["as_of"] = None if times is None else float(times[i])
            if lacking := names_of(self._predictor.graph, absent[i].tolist()):
                record["absent"] = list(lacking)
            record["answer"] = answer
            if explanations is not None:
                record["explanation"] = explanations[i]
            lines.append(json.dumps(record) + "\n")
        try:
            with _WRITING, self._file.open("a", encoding="utf-8") as out:
                out.write("".join(lines))
        except OSError as error:
            what = f"records cannot be written ({str(error.strerror or error).lower()})"
            raise DataError(what, where=str(self._file), hint="check the path and the disk") from None
