"""Judge the candidates of a portfolio by cross-validation on the labelled subgraphs outside the test split.

The subgraphs are dealt into folds, equal nodes and groups together. For each fold, a candidate is fitted to the others
and predicts the fold, so that every subgraph is predicted once by a model that never saw it. Within each fit, an eighth
of the subgraphs to learn from serves the choices that a recipe leaves open and the selection of epochs; a model that is
fitted in one go is then solved again on all of them. With ``auto.fit_on = "train"`` the training split is dealt into
folds, and the validation split has that part, as in published protocols. Small sets are dealt several times.

Candidates that are finished are kept in RUN/candidates, and are not judged again when a run is resumed.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import AutoSettings, Recipe, recipe_key
from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.own_times import times_of
from subgnn.data.splits import draw_folds, split_units
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import PRETRAINED, check_source, source_vectors
from subgnn.errors import DataError, DataWarning, UserError
from subgnn.metrics.significance import ScoreTerms, score_interval, score_terms
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.interface import Cost, Sizes, Vectors
from subgnn.models.recipes import check_recipe, used_attributes
from subgnn.models.registry import check_edges, estimated_cost, model_of
from subgnn.models.spec import ModelSpec
from subgnn.ranking import recall_count
from subgnn.storage.arrays import ArrayFile, Format, encode_arrays, read_arrays, write_parts
from subgnn.storage.files import json_digest
from subgnn.task import Thresholds, task_of
from subgnn.training.ensemble_selection import HEADLINE, RANKING, OutOfFold, prediction_terms, score_of, score_samples
from subgnn.training.fit import HELD_OUT, TRAIN, VAL, FitHooks, FitResult, Stopped, fit
from subgnn.training.options import NO_CALLBACKS, Callbacks

CANDIDATES = "candidates"
"""The folder of a run with the out-of-fold predictions of each candidate."""
_FORMAT = Format(
    name="subgnn-candidate",
    noun="file of out-of-fold predictions",
    make="subgnn train writes them",
    again="remove it, and finish the run with subgnn train --resume",
)
_UNUSED = 3  # beside the places of splits
_PARTS = 8  # one of them serves choices within a fit
_ENOUGH, _MOST_REPEATS = 1000, 4
_CHEAP = 0.1  # the part of the budget that a candidate's repeats may take


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidation:
    """The labelled subgraphs that candidates are judged on and select on; none is in the test split.

    ``rows`` are their places in the dataset that was given; ``judged`` are dealt into folds. With ``has_validation``,
    the others serve all choices. Where subgraphs are measured as of their own times, ``blocks`` (n,) are their places
    in time: a block is judged by fits to those before it, and the first one is never judged.
    """

    dataset: Dataset
    rows: NDArray[np.int64]
    judged: NDArray[np.int64]
    has_validation: bool
    seed: int
    blocks: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, dataset: Dataset, auto: AutoSettings, seed: int) -> CrossValidation:
        """The folds of a dataset; refused if there are no labels, or too few subgraphs."""
        given = dataset.subgraphs
        given.require_labels("train")
        splits = np.zeros(len(given), np.int8) if given.splits is None else np.array(given.splits)
        rows = np.flatnonzero(splits != HELD_OUT)
        subgraphs = replace(given, groups=_kept_groups(given, splits)).take(rows)
        has_validation = auto.fit_on == "train" and bool((splits == VAL).any())
        times = times_of(subgraphs.nodes) if auto.fit_on != "train" else None
        blocks = None if times is None else _time_blocks(times, auto.folds)
        judged = np.flatnonzero(splits[rows] == TRAIN) if auto.fit_on == "train" else np.arange(len(rows))
        if auto.fit_on == "train" and not has_validation:
            rows, subgraphs, judged = rows[judged], subgraphs.take(judged), np.arange(len(judged))
        if blocks is not None:
            judged = np.flatnonzero(blocks > 0)
        pool = replace(dataset, subgraphs=replace(subgraphs, splits=None))
        found = cls(pool, rows, judged, has_validation, seed, blocks)
        needed = 2 if has_validation else 3
        if len(np.unique(found.units)) < needed:
            groups = "" if subgraphs.groups is None else " (each group counts once)"
            what = f"only {len(np.unique(found.units))} distinct labelled subgraphs outside the test split{groups}"
            hint = f"at least {needed} are needed to judge candidates; name a single recipe, e.g. --recipe bag"
            raise DataError(what, where="train", hint=hint)
        return found

    @property
    def subgraphs(self) -> SubgraphSet:
        """The subgraphs that are divided into folds."""
        return self.dataset.subgraphs.take(self.judged)

    @property
    def units(self) -> NDArray[np.int64]:
        """The unit that determines the fold of each: subgraphs of equal nodes, or of one group."""
        return split_units(self.subgraphs, self.subgraphs.groups)

    @property
    def key(self) -> str:
        """A hash of everything that out-of-fold predictions depend on besides the candidate."""
        graph = self.dataset.graph
        parts = (
            graph.content_hash,
            "" if graph.features is None else hashlib.sha256(np.ascontiguousarray(graph.features).data).hexdigest(),
            self.dataset.subgraphs.content_hash,
            hashlib.sha256(self.judged.tobytes()).hexdigest(),
            str(self.seed),
        )
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()

    def folds(self, repeat: int, count: int) -> list[NDArray[np.int8]]:
        """The splits for the fits of one repeat: each holds out one fold; in time, later blocks have no part in it."""
        if self.blocks is not None:
            in_order = []
            for block in range(1, int(self.blocks.max()) + 1):
                splits = np.full(len(self.blocks), _UNUSED, np.int8)
                splits[self.blocks < block], splits[self.blocks == block] = TRAIN, HELD_OUT
                in_order.append(self._with_validation(splits, f"auto/validation/{repeat}/{block}"))
            return in_order
        fold = draw_folds(self.subgraphs, self.seed, f"auto/folds/{repeat}", folds=count)
        found = []
        for i in range(int(fold.max()) + 1):
            splits = self._start()
            splits[self.judged[fold == i]] = HELD_OUT
            found.append(self._with_validation(splits, f"auto/validation/{repeat}/{i}"))
        return found

    def whole(self) -> NDArray[np.int8]:
        """The splits of a fit to all subgraphs."""
        return self._with_validation(self._start(), "auto/validation")

    def _start(self) -> NDArray[np.int8]:
        splits = np.full(len(self.dataset.subgraphs), VAL, np.int8)
        splits[self.judged if self.blocks is None else slice(None)] = TRAIN
        return splits

    def _with_validation(self, splits: NDArray[np.int8], name: str) -> NDArray[np.int8]:
        """Put the part of the training subgraphs that costs the fewest classes into validation, unless there is one."""
        if self.has_validation:
            return splits
        train = np.flatnonzero(splits == TRAIN)
        subgraphs = self.dataset.subgraphs.take(train)
        parts = draw_folds(subgraphs, self.seed, name, folds=_PARTS)
        chosen = 0
        if task_of(subgraphs.task).one_class:
            labels = np.asarray(subgraphs.targets)
            left = [len(np.unique(labels[parts != part])) for part in range(int(parts.max()) + 1)]
            chosen = int(np.argmax(left))
        splits[train[parts == chosen]] = VAL
        return splits


def _time_blocks(times: NDArray[Any], folds: int) -> NDArray[np.int64]:
    """The place in time of each subgraph: about equal parts, one more than folds; equal times stay together."""
    _, place, counts = np.unique(times, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - counts / 2
    blocks = np.minimum((middles * (folds + 1) / len(times)).astype(np.int64), folds)
    found: NDArray[np.int64] = np.unique(blocks, return_inverse=True)[1][place]
    return found


def _kept_groups(subgraphs: SubgraphSet, splits: NDArray[np.int8]) -> Strings | None:
    """The groups, unless the split itself divides them between test and the rest."""
    groups = subgraphs.groups
    if groups is None:
        return None
    test, rest = (set(groups.take(np.flatnonzero((splits == HELD_OUT) == held))) for held in (True, False))
    return None if test & rest else groups


@dataclass(slots=True)
class Budget:
    """Seconds that a portfolio may take, and what is left of them."""

    seconds: float
    begin: float = field(default_factory=lambda: time.monotonic())

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.begin + self.seconds - time.monotonic()


@dataclass(slots=True, eq=False)
class Entry:
    """A candidate: its recipe, its plan, and once it was judged, its out-of-fold predictions (repeats, n, outputs).

    ``seconds`` are those of each fit. ``dropped`` says why it is not judged, or failed; ``behind``, that it was stopped
    because it is clearly behind the best.
    """

    name: str
    recipe: Recipe
    repeats: int = 1
    cost: Cost = field(default_factory=lambda: Cost(0.0))
    predictions: NDArray[np.float32] | None = None
    seconds: list[float] = field(default_factory=list)
    dropped: str = ""
    behind: bool = False
    note: str = ""

    @property
    def refit(self) -> float:
        """Seconds that a fit to all subgraphs takes: measured, or estimated before that."""
        return float(np.median(self.seconds)) if self.seconds else self.cost.fit

    def estimate(self, folds: int) -> float:
        """Seconds of all its fits: for each fold of each repeat, and to all subgraphs."""
        return self.cost.once + self.cost.fit * (self.repeats * folds + 1)


def plan(recipes: Mapping[str, Recipe], pool: CrossValidation, auto: AutoSettings) -> list[Entry]:
    """The candidates in their order, with repeats, estimates, and notes of those that are left out.

    A function of the data and the settings alone. The first candidate that can be fitted is never left out.
    """
    graph, subgraphs, left = pool.dataset.graph, pool.subgraphs, auto.time
    sizes = Sizes(
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        subgraphs=len(subgraphs),
        memberships=len(subgraphs.nodes.values),
        outputs=max(1, subgraphs.num_classes),
        types=len(graph.types),
    )
    rows: list[Entry] = []
    for name, recipe in recipes.items():
        row = Entry(name, recipe, dropped=_problem(recipe, graph))
        if times_of(subgraphs.nodes) is not None and not model_of(recipe).measures_at_own_time:
            row.dropped = row.dropped or "it cannot measure a subgraph as of its own time"
        if not row.dropped:
            row.cost = estimated_cost(recipe, sizes)
            wanted = auto.repeats or min(_MOST_REPEATS, -(-_ENOUGH // len(subgraphs)))
            affordable = int(_CHEAP * auto.time // (auto.folds * row.cost.fit))
            row.repeats = wanted if auto.repeats else max(1, min(wanted, affordable))
            row.repeats = 1 if pool.blocks is not None else row.repeats  # time has one order
            seconds = row.estimate(auto.folds)
            if seconds > left and any(not one.dropped for one in rows):
                row.dropped = over_budget(seconds, left)
            else:
                left -= seconds
        if "features" in graph.attributes and "features" in used_attributes(recipe):
            row.note = "uses node features"
        rows.append(row)
    return rows


def over_budget(seconds: float, left: float) -> str:
    """The note of a candidate that takes longer than what is left of the budget."""
    return f"left out: needs about {seconds:.0f} s, but only {max(0.0, left):.0f} s of the budget remain"


def _problem(recipe: Recipe, graph: Graph) -> str:
    """Why a candidate cannot be fitted to the data, or nothing."""
    model = model_of(recipe)
    try:
        check_recipe(recipe, graph)
        check_edges(recipe, graph)
        if model.uses_embeddings(recipe):
            check_source(recipe)
            if recipe.embeddings.source in PRETRAINED and not graph.num_edges:
                return "pretraining needs edges, but the graph has none"
    except UserError as error:
        return error.what
    return ""


class Dropped(Exception):
    """Judging of a candidate stopped early; the message says why."""


Check = Callable[[float, NDArray[np.int64], NDArray[np.float32]], None]
"""Called after a fit; raises :class:`Dropped` if the candidate is not to go on.

It is given an estimate of the seconds that the other fits take, the subgraphs that were predicted in the first repeat
(m,), and what was predicted for them (1, m, outputs).
"""


@dataclass(slots=True)
class FoldFits:
    """Fits of recipes to parts of a pool, which share their node embeddings; ``stop`` is asked after every epoch."""

    pool: CrossValidation
    device: str = "auto"
    cache: bool = True
    callbacks: Callbacks = NO_CALLBACKS
    stop: Callable[[], bool] = lambda: False
    _tables: dict[str, Vectors] = field(default_factory=dict)
    _graph: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The undirected graph."""
        self._graph = self._graph or self.pool.dataset.graph.undirected()
        return self._graph

    def vectors(self, recipe: Recipe) -> Vectors:
        """The table of node embeddings of a recipe, computed once; None for random ones and models without."""
        if not model_of(recipe).uses_embeddings(recipe) or recipe.embeddings.source == "random":
            return None
        key = json_digest({"embeddings": asdict(recipe.embeddings), "pretrain": asdict(recipe.pretrain)})
        if key not in self._tables:
            report = self.callbacks.on_pretrain
            self._tables[key] = source_vectors(
                recipe, self.graph, device=self.device, cache=self.cache, on_epoch=report
            )
        return self._tables[key]

    def fit(self, recipe: Recipe, splits: NDArray[np.int8]) -> FitResult:
        """Fit a recipe; without other subgraphs to choose on, to the validation part, too, if that can be done."""
        with warnings.catch_warnings():
            # The whole set was checked before; a fold may well lack a class.
            warnings.simplefilter("ignore", DataWarning)
            return fit(
                recipe,
                self.pool.dataset,
                splits,
                seed=self.pool.seed,
                device=self.device,
                cache=self.cache,
                vectors=self.vectors(recipe),
                join=not self.pool.has_validation,
                outputs=("test",),
                hooks=FitHooks(on_prepare=self.callbacks.on_prepare, after_epoch=self._after_epoch),
            )

    def _after_epoch(self, record: dict[str, Any], _: Any) -> None:
        if self.stop():
            raise Stopped


def judge(row: Entry, auto: AutoSettings, fits: FoldFits, check: Check) -> None:
    """Compute out-of-fold predictions; ``check`` is called after each fit but the last, and may raise."""
    pool = fits.pool
    outputs = max(1, pool.subgraphs.num_classes)
    found = np.zeros((row.repeats, len(pool.judged), outputs), np.float32)
    place = np.full(len(pool.dataset.subgraphs), -1, np.int64)
    place[pool.judged] = np.arange(len(pool.judged))
    parts = [(repeat, splits) for repeat in range(row.repeats) for splits in pool.folds(repeat, auto.folds)]
    seconds: list[float] = []
    predicted = np.zeros(len(pool.judged), np.bool_)
    begin = time.monotonic()
    fits.vectors(row.recipe)
    for i, (repeat, splits) in enumerate(parts):
        fitted = fits.fit(row.recipe, splits)
        held_out = np.flatnonzero(splits == HELD_OUT)
        found[repeat, place[held_out]] = fitted.predictions
        predicted[place[held_out]] = True
        seconds.append(time.monotonic() - begin)
        begin = time.monotonic()
        # The first fit also prepares what the others find in the cache.
        each = fitted.seconds.train if i == 0 else seconds[-1]
        if i < len(parts) - 1:
            rows = np.flatnonzero(predicted)
            check(each * (len(parts) - 1 - i), rows, found[:1, rows])
    if not np.isfinite(found).all():
        raise UserError("a prediction is not a finite number", where=row.name)
    row.predictions, row.seconds = found, seconds


def candidate_key(row: Entry, pool_key: str, auto: AutoSettings) -> str:
    """A hash of everything that the out-of-fold predictions of a candidate depend on."""
    about = {"recipe": recipe_key(row.recipe), "folds": auto.folds, "repeats": row.repeats, "pool": pool_key}
    return json_digest(about)


def save_candidate(row: Entry, key: str, rows: NDArray[np.int64], run: Path) -> None:
    """Write the out-of-fold predictions of a candidate, the ``rows`` they are for (n,), and the seconds into a run."""
    arrays = {"predictions": row.predictions, "rows": rows, "seconds": np.array(row.seconds)}
    (run / CANDIDATES).mkdir(exist_ok=True)
    path = run / CANDIDATES / f"{row.name}.safetensors"
    write_parts(path, encode_arrays(arrays, _FORMAT, {"name": row.name, "key": key}), overwrite=True)


def load_candidate(row: Entry, key: str, run: Path) -> bool:
    """Read the out-of-fold predictions of a candidate, if they are there, whole, and those of the same fits."""
    try:
        file = _candidate_file(run, row.name)
        content: Any = file.content()
    except DataError:
        return False
    if content.get("key") != key:
        return False
    row.predictions = np.array(file.arrays["predictions"], np.float32)
    row.seconds = file.arrays["seconds"].tolist()
    return True


def read_candidate(run: Path, name: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The out-of-fold predictions of a candidate (repeats, n, outputs), and their rows of the dataset (n,)."""
    arrays = _candidate_file(run, name).arrays
    return np.array(arrays["predictions"], np.float32), np.array(arrays["rows"], np.int64)


def _candidate_file(run: Path, name: str) -> ArrayFile:
    return read_arrays(run / CANDIDATES / f"{name}.safetensors", _FORMAT)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateScores:
    """Out-of-fold scores of candidates by the metric that they are compared by, with 95 % intervals."""

    pool: CrossValidation
    metric: str

    @classmethod
    def by(cls, select_by: str, pool: CrossValidation) -> CandidateScores:
        """Scores by the metric of a ranking where the recipe selects by one, else by the headline metric."""
        metric = task_of(pool.subgraphs.task).selection_metric(select_by)
        ranked = metric in RANKING or recall_count(metric) is not None
        return cls(pool, metric if ranked else HEADLINE)

    @property
    def metric_name(self) -> str:
        """The metric of the leaderboard: that of a ranking, else micro-F1 or R^2, whatever epochs are selected by."""
        return task_of(self.pool.subgraphs.task).headline if self.metric == HEADLINE else self.metric

    def constant(self) -> dict[str, float | None]:
        """The score of always predicting the most frequent class, or the mean; for rankings, of equal scores."""
        targets, task = np.asarray(self.pool.subgraphs.targets), self.pool.subgraphs.task
        if self.metric == HEADLINE:
            guess = np.broadcast_to(task_of(task).constant(targets), targets.shape)
            return self._with_interval(score_terms(guess, targets, task))
        even = np.zeros((1, len(targets), max(1, self.pool.subgraphs.num_classes)))  # equal scores of all subgraphs
        return {"score": score_of(even, targets, task, self.metric), "low": None, "high": None}

    def terms(self, row: Entry) -> ScoreTerms | None:
        """The terms of the headline score of a candidate; None before it is judged."""
        if row.predictions is None:
            return None
        targets = np.asarray(self.pool.subgraphs.targets, np.float64)
        return prediction_terms(row.predictions.astype(np.float64), targets, self.pool.subgraphs.task)

    def of(self, row: Entry) -> dict[str, float | None]:
        """The out-of-fold score of a candidate by the metric of selection, with its 95 % interval."""
        if row.predictions is None or self.metric == HEADLINE:
            terms = self.terms(row)
            return {"score": None, "low": None, "high": None} if terms is None else self._with_interval(terms)
        found, subgraphs = row.predictions.astype(np.float64), self.pool.subgraphs
        targets = np.asarray(subgraphs.targets, np.float64)
        samples = score_samples(found, OutOfFold(found[None], targets, subgraphs.task, self.pool.units, self.metric))
        low, high = np.quantile(samples, [0.025, 0.975]).tolist() if len(samples) else (None, None)
        return {"score": score_of(found, targets, subgraphs.task, self.metric), "low": low, "high": high}

    def _with_interval(self, terms: ScoreTerms) -> dict[str, float | None]:
        low, high = score_interval(terms.joined(self.pool.units))
        return {"score": terms.score, "low": low, "high": high}


def output_metrics(
    outputs: NDArray[Any],
    subgraphs: SubgraphSet,
    spec: ModelSpec,
    thresholds: Thresholds = 0.5,
    *,
    with_loss: bool = False,
    select_by: str = "auto",
) -> dict[str, float]:
    """Metrics of outputs for labelled subgraphs, after the loss where it is wanted."""
    found, targets = torch.from_numpy(np.asarray(outputs, np.float32)), target_tensor(subgraphs, spec.standards)
    options: dict[str, Any] = {"thresholds": thresholds, "select_by": select_by}
    task = task_of(spec.task)
    scores = task.metrics(found, targets, unit=label_unit(spec.standards), **options)
    return ({"loss": float(task.loss(found, targets))} if with_loss else {}) | scores
