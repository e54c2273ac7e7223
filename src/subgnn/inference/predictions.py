"""Predictions as people read them: label, probability, set of labels, known and new nodes, novelty.

The command line, Python and the server get the same columns from :func:`prediction_table`; docs/command_line.md has a
table of them. A note says whether the subgraphs that a run is asked about differ from those it was trained with
(:class:`Drift`).
"""

import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.config.settings import PORTFOLIO
from subgnn.data.subgraphs import SubgraphSet, label_separator
from subgnn.errors import DataWarning, UserError, choices
from subgnn.inference.answers import CLASS, AnswerTable, Files, Prefixed, Query, chunk_size
from subgnn.inference.options import PredictOptions
from subgnn.inference.predictor import Predictor, pooled
from subgnn.inference.records import Records
from subgnn.metrics.coverage import in_set
from subgnn.parallel.engine import Engine
from subgnn.ragged import Ragged
from subgnn.storage.tables import Column, Part
from subgnn.task import task_of
from subgnn.training.run_dir import dataset_path

_DIGITS = 6  # of recorded scores
_FEWEST, _SURE = 20, 0.001  # of drift


def coverage_note(predictor: Predictor) -> str:
    """Where the sets of labels come from, if that makes them too small; else empty."""
    if predictor.spec.method == PORTFOLIO:
        return ""
    return "sets of labels are from the validation split, which the model was selected on: they may be slightly small"


def set_limits(predictor: Predictor, options: PredictOptions) -> NDArray[np.float64] | None:
    """The largest scores of labels in a set; None without a coverage. Warns of classes with too few subgraphs."""
    spec, held_out = predictor.spec, predictor.spec.held_out
    if options.coverage is None:
        return None
    if held_out is None:
        raise UserError("the run has no held-out scores", where="--coverage", hint="train again with this version")
    if options.coverage_by_class and not spec.classes:
        raise UserError("the labels are values, not classes", where="--coverage-by-class", hint="leave it out")
    limits = held_out.limits(options.coverage, spec.num_outputs, by_class=options.coverage_by_class)
    if few := [name for name, limit in zip(spec.classes, limits, strict=False) if np.isinf(limit)]:
        needed = int(np.ceil(options.coverage / (1 - options.coverage) - 1e-9))
        what = f"{len(few)} classes have fewer than {needed} labelled subgraphs, so every set contains them"
        warnings.warn(f"--coverage-by-class: {what}: {', '.join(few[:3])}", DataWarning, stacklevel=2)
    return limits


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predictions of some subgraphs, a value or a row for each.

    Shapes:
        scores: (n, outputs). low, high: the interval of a real value. novelty: (n,), or None if the run has none.
    """

    labels: list[str]
    probabilities: list[float] | None
    scores: NDArray[np.float32]
    sets: list[list[str]] | None = None
    low: list[float] | None = None
    high: list[float] | None = None
    novelty: list[float] | None = None

    @classmethod
    def of(
        cls, predictor: Predictor, subgraphs: Ragged, scores: NDArray[np.float32], limits: NDArray[Any] | None
    ) -> Self:
        """From scores (:meth:`Predictor.probabilities`) and the limits of sets (:func:`set_limits`)."""
        spec, found = predictor.spec, predictor.novelty(subgraphs)
        task, given = task_of(spec.task), {"novelty": None if found is None else found.tolist()}
        labels = [predictor.label_text(row) for row in scores]
        if task.real:
            ends: dict[str, Any] = {}
            if limits is not None:
                values = scores[:, 0].astype(np.float64)
                ends = {"low": (values - limits[0]).tolist(), "high": (values + limits[0]).tolist()}
            return cls(labels, None, scores, **ends, **given)
        decided = task.decide(scores, predictor.thresholds)
        # The probability that all decisions about several labels are right, as if they were independent.
        each = np.where(decided > 0, scores, 1 - scores).prod(axis=1) if task.several else None
        sure = scores[np.arange(len(scores)), decided] if each is None else each
        sets = None
        if limits is not None:
            sets = [[spec.classes[c] for c in np.flatnonzero(row)] for row in in_set(scores, limits)]
        return cls(labels, sure.astype(np.float64).tolist(), scores, sets, **given)

    def answers(self, predictor: Predictor, options: PredictOptions) -> list[dict[str, Any]]:
        """What is recorded of each: the label, all scores, and the set of labels or the interval with its coverage."""
        titles = task_of(predictor.spec.task).columns(predictor.spec.classes)
        columns = {"labels": self.sets, "low": self.low, "high": self.high}
        wanted: dict[str, Any] = {"coverage": options.coverage, "coverage_by_class": options.coverage_by_class}
        found = []
        for i, (label, row) in enumerate(zip(self.labels, self.scores.tolist(), strict=True)):
            scores = {title: round(value, _DIGITS) for title, value in zip(titles, row, strict=True)}
            sets = {name: values[i] for name, values in columns.items() if values is not None}
            found.append({"label": label, "scores": scores} | (wanted | sets if sets else {}))
        return found


def prediction_table(
    predictor: Predictor,
    query: Query,
    options: PredictOptions | None = None,
    *,
    drift: "Drift | None" = None,
    records: Records | None = None,
) -> AnswerTable:
    """The columns of this module for each subgraph, which ``drift`` compares with training; answers are recorded."""
    options, spec, query = options or PredictOptions(), predictor.spec, query.as_of(predictor.as_of_step)
    task, limits = task_of(spec.task), set_limits(predictor, options)
    classes, top = list(task.columns(spec.classes)), options.top
    if top is not None and task.real:
        raise UserError("the labels are values, not classes", where="--top", hint="leave it out")
    shown = len(classes) if top is None else min(top, len(classes))
    own: list[Prefixed] = [(Column("label"), "")] + [(Column("probability", float), "")] * (not task.real)
    if top is None:
        own += [(Column(title, float), CLASS) for title in classes]
    else:
        pairs = [(Column(f"class_{k + 1}"), Column(f"probability_{k + 1}", float)) for k in range(shown)]
        own += [(column, "") for pair in pairs for column in pair]
    if limits is not None:
        own += [(Column(end, float), "") for end in ("low", "high")] if task.real else [(Column("labels"), "")]
    own += [(Column("novelty", float), "")] * (spec.novelty is not None)
    joiner, key = label_separator(spec.classes), _sort_key(options.sort, predictor)

    def answer(rows: Sequence[int], nodes: Ragged) -> list[Sequence[Any]]:
        scores = predictor.probabilities(nodes)
        found = Predictions.of(predictor, nodes, scores, limits)
        if drift is not None:
            drift.add(nodes, scores)
        if records is not None:
            records.add([query.members.nodes_of(row) for row in rows], nodes, found.answers(predictor, options))
        columns: list[Any] = [found.labels, found.probabilities]
        if top is None:
            columns += scores.T.tolist()
        else:
            for column in np.argsort(-scores, axis=1, kind="stable")[:, :shown].T:
                columns += [[classes[c] for c in column], scores[np.arange(len(scores)), column].tolist()]
        sets = None if found.sets is None else [joiner.join(one) for one in found.sets]
        columns += [sets, found.low, found.high, found.novelty]
        if key is not None:
            columns.append({"novelty": found.novelty, "": found.probabilities}.get(key) or scores[:, int(key)].tolist())
        return [column for column in columns if column is not None]

    hidden: list[Prefixed] = [] if key is None else [(Column("\0", float), "")]  # a title that no table has
    size, least, members = chunk_size(spec), options.min_known, options.members
    table = AnswerTable.of(query, [*own, *hidden], answer, size, min_known=least, members=members)
    return table if key is None else _sorted(table, len(own) + 1)


def _sort_key(sort: str | None, predictor: Predictor) -> str | None:
    """What rows are sorted by: empty for the probability of the label, ``novelty``, or the number of a column."""
    spec = predictor.spec
    keys = {"probability": ""} if spec.classes else {"value": "0"}
    keys |= {f"probability:{name}": str(column) for column, name in enumerate(spec.classes)}
    keys |= {} if spec.novelty is None else {"novelty": "novelty"}
    if sort is not None and sort not in keys:
        raise UserError(f"cannot sort by '{sort}'", where="--sort", hint=choices(sort, keys))
    return None if sort is None else keys[sort]


def _sorted(table: AnswerTable, hidden: int) -> AnswerTable:
    """The table in falling order of the column ``hidden``, which is taken out; rows without a value come last."""

    def parts() -> Iterator[Part]:
        rows = [row for part in table.parts for row in zip(*part, strict=True)]
        rows.sort(key=lambda row: -np.inf if row[hidden] is None else row[hidden], reverse=True)
        if rows:
            yield [column for i, column in enumerate(zip(*rows, strict=True)) if i != hidden]

    return AnswerTable([column for i, column in enumerate(table.columns) if i != hidden], parts())


class Drift:
    """The latest ``most`` subgraphs that a run was asked about, to compare with its training split or whole dataset.

    Each of a few quantities is compared by a two-sample test: the number of nodes of a subgraph and the share of its
    nodes that occur in training subgraphs by Kolmogorov and Smirnov's, the predicted classes against the training
    labels by the chi-squared test of a table. A batch differs if a p-value, times the number of tests, is below .001: a
    small difference of many subgraphs is found, too, so both values are told. Fewer than 20 subgraphs are not compared.
    """

    def __init__(self, predictor: Predictor, training: SubgraphSet, *, most: int = 2**20) -> None:
        known = training if training.splits is None else training.take(training.indices("train"))
        self._predictor, self._known = predictor, known
        self._inside = np.bincount(known.nodes.values, minlength=predictor.graph.num_nodes)
        self._learned = {row.tobytes() for row in known.nodes}
        self._classes = predictor.spec.classes if task_of(predictor.spec.task).one_class else ()
        self._seen: deque[tuple[int, float, int]] = deque(maxlen=most)
        self._lock = threading.Lock()

    def add(self, subgraphs: Ragged, scores: NDArray[np.float32]) -> None:
        found = scores.argmax(axis=1) if self._classes else np.full(len(subgraphs), -1)
        shares = self._shares(subgraphs, np.array([row.tobytes() in self._learned for row in subgraphs], bool))
        with self._lock:
            self._seen.extend(zip(subgraphs.lengths.tolist(), shares.tolist(), found.tolist(), strict=True))

    def _shares(self, subgraphs: Ragged, learned: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The share of each subgraph's nodes in training subgraphs, in others than itself if it is ``learned``."""
        met = self._inside[subgraphs.values] > learned[subgraphs.row_ids]
        return np.bincount(subgraphs.row_ids, met, len(subgraphs)) / np.maximum(subgraphs.lengths, 1)

    def differences(self) -> list[tuple[str, float, str]]:
        """Each quantity, its p-value against training, and both in words; none of too few subgraphs."""
        with self._lock:
            seen = list(self._seen)
        known = self._known
        if len(seen) < _FEWEST or len(known) < _FEWEST:
            return []
        sizes, shares, classes = (np.array(column) for column in zip(*seen, strict=True))
        learned = self._shares(known.nodes, np.ones(len(known), bool))
        found = []
        for name, now, then, form in (
            ("nodes of a subgraph", sizes, known.nodes.lengths, ".0f"),
            ("members known from training", shares, learned, ".0%"),
        ):
            words = f"median {np.median(now):{form}}, in training {np.median(then):{form}}"
            found.append((name, float(scipy.stats.ks_2samp(now, then).pvalue), words))
        targets = known.targets
        if not self._classes or targets is None or known.classes != self._classes:
            return found
        number = len(self._classes)
        table = np.stack([np.bincount(classes, minlength=number), np.bincount(targets, minlength=number)])
        present = np.array(self._classes)[table.any(axis=0)]
        table = table[:, table.any(axis=0)]
        p_value = 1.0 if table.shape[1] < 2 else float(scipy.stats.chi2_contingency(table).pvalue)
        shares_of = table / table.sum(axis=1, keepdims=True)
        most = int(np.argmax(np.abs(shares_of[0] - shares_of[1])))
        words = f"{present[most]} {shares_of[0, most]:.0%}, in training {shares_of[1, most]:.0%}"
        return [*found, ("predicted classes", p_value, words)]

    def line(self, *, unknown: int = 0) -> str:
        """What differs, in one line; empty if nothing does. ``unknown`` nodes of the subgraphs are not in the graph."""
        tests = self.differences()
        parts = [f"{name} ({words}; p = {p:.1g})" for name, p, words in tests if p * len(tests) < _SURE]
        if parts and unknown:
            total = unknown + sum(size for size, _, _ in self._seen)
            parts.append(f"{unknown / total:.0%} of nodes are not in the graph")
        return f"these subgraphs differ from training: {'; '.join(parts)}" if parts else ""


def write_predictions(
    run: Path, files: Files, options: PredictOptions, *, engine: Engine | None = None, record: Path | None = None
) -> int:
    """Write :func:`prediction_table`, in the format that the ending names; return the number of subgraphs.

    Outputs come from the workers of the engine, if one is given. A note says if the subgraphs differ from those of
    training. ``record`` is a file to append a line about each answer to.
    """
    form = files.output_format(default="tsv")
    opened = files.open(run)
    query = files.read(opened.predictor)
    records = None if record is None else Records(record, run, opened.predictor, graph=files.graph)
    drift = None if opened.subgraphs is None else Drift(opened.predictor, opened.subgraphs)
    same = run.is_dir() and opened.result.edges_until is None and opened.match is None
    bundle = dataset_path(run, opened.result, files.data) if same else None
    predictor = pooled(opened.predictor, engine, bundle=bundle)
    files.write(form or "tsv", prediction_table(predictor, query, options, drift=drift, records=records))
    if drift is not None and (line := drift.line(unknown=int(query.matched.dropped.sum()))):
        files.reading.on_note(line)
    if options.coverage is not None and (note := coverage_note(opened.predictor)):
        files.reading.on_note(note)
    return len(query)
