"""Select the final answer of a portfolio from out-of-fold predictions: one candidate, or a weighted mean of several.

The score is micro-F1, for real values R^2, or the metric of a ranking that ``training.select_by`` names, which is AUPRC
where one of two classes is rare. Three rules compete:

- ``simplest``: the first candidate, in the order of the portfolio, that scores within one standard error of the best;
  by the metric of a ranking, one that the best leads by no more than one standard error of this lead;
- ``best``: the candidate of the highest score;
- ``ensemble``: greedy selection with replacement (Caruana et al., ICML 2004). It starts from the candidate of the
  lowest loss and adds, step by step, the one that makes the loss of the mean of all added so far lowest; how often a
  candidate was added is its weight. The loss, the negative log-likelihood, counts how sure a prediction is, and so is a
  steadier guide than the score, which counts right and wrong.

An ensemble that is selected on the same predictions it is scored on looks better than it is, and so does the best of
many candidates. Rules are therefore compared by cross-validation: the out-of-fold predictions are dealt into parts, and
the predictions of each part are mixed by the weights that the rule selects on the other parts. Of the rules that score
within :data:`MARGIN` of the highest, the one of the lowest loss after calibration wins, of equals the simpler one. It
is then applied to all predictions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.metrics.significance import ScoreTerms, mean_terms, resampled, score_terms, standard_error, swap_test
from subgnn.models.kernel_machines.regression import minimise_in_box
from subgnn.ranking import ranking_metric, recall_count
from subgnn.task import Binary, MultiLabel, Scores, Standard, TaskName, task_of

STEPS = 30
HEADLINE = "headline"
"""Scored by micro-F1, for real values by R^2."""
BEHIND = 0.01
"""The p-value of a paired lead from which a candidate is clearly behind."""
MARGIN = 0.005
"""How far below the highest score a rule may be that wins by its loss."""
_TINY = 1e-12
PATIENCE = 8  # steps without improvement after which greedy selection stops

Array = NDArray[np.float64]


def is_ranking(metric: str) -> bool:
    """Whether a metric depends on nothing but the order of scores."""
    return metric in ("auroc", "auprc") or recall_count(metric) is not None


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """Out-of-fold predictions of several candidates for the same labelled subgraphs, scored by ``metric``.

    Shapes:
        predictions: (candidates, repeats, n, outputs), probabilities or values. targets: (n,), or (n, labels).
        units: (n,), equal for subgraphs that count as one: of equal nodes, or of one group.
    """

    predictions: Array
    targets: NDArray[np.float64]
    task: TaskName
    units: NDArray[np.int64]
    metric: str = HEADLINE

    def take(self, rows: NDArray[np.int64]) -> Self:
        units = np.unique(self.units[rows], return_inverse=True)[1]
        return replace(self, predictions=self.predictions[:, :, rows], targets=self.targets[rows], units=units)

    def mixed(self, weights: Array) -> Array:
        """The mean of the candidates by weight (repeats, n, outputs)."""
        return np.asarray(np.tensordot(weights, self.predictions, axes=1))

    def score(self, predictions: Array) -> float:
        """The score of predictions (repeats, n, outputs), as the mean over repeats; NaN becomes 0."""
        if not is_ranking(self.metric):
            return float(np.nan_to_num(self.terms(predictions).score))
        return float(np.nan_to_num(np.mean([ranking_metric(self.metric, one, self.targets) for one in predictions])))

    def terms(self, predictions: Array) -> ScoreTerms:
        """The terms of micro-F1, above the best common threshold of several labels, or of R^2: the mean of repeats."""
        task = task_of(self.task)
        found = task.decide(predictions, task.best_threshold(predictions, self.targets))
        return mean_terms([score_terms(one, self.targets, self.task) for one in found])

    def samples(self, predictions: Array) -> Array:
        """Scores by a ranking, the means over repeats, on samples of the subgraphs."""

        def of(one: Array) -> Array:
            # Samples of rows in their order are nearly sorted, which ranks them several times faster.
            order = np.argsort(-one[:, -1], kind="stable")
            ranked, targets = one[order], self.targets[order]
            return resampled(lambda rows: ranking_metric(self.metric, ranked[rows], targets[rows]), self.units[order])

        return np.asarray(np.mean([of(one) for one in predictions], axis=0))

    @property
    def rarer_units(self) -> int:
        """How many units have another class than the most frequent one, or any label."""
        common = task_of(self.task).constant(self.targets) if self.targets.ndim == 1 else 0
        rows = (self.targets != common).reshape(len(self.targets), -1).any(axis=1)
        return len(np.unique(self.units[rows]))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The rule that was applied, the weights of the candidates (they sum to 1), and the score of each rule."""

    applied: str
    weights: Array
    scores: dict[str, float]

    @property
    def rule(self) -> str:
        """The rule by name; an ensemble of one is called the best."""
        return "best" if self.applied == "ensemble" and self.weights.max() == 1 else self.applied


def simplest(given: OutOfFold) -> Array:
    """All weight on the first candidate within one standard error of the best."""
    scores = list(map(given.score, given.predictions))
    top = given.predictions[int(np.argmax(scores))]
    if given.metric == HEADLINE:
        error = standard_error(given.terms(top).joined(given.units))
        return _only(next(i for i, score in enumerate(scores) if score >= max(scores) - error), len(scores))
    # Of few positives, scores are far less certain than leads over models that find some of the same ones. Errors are
    # those of the first repeat, as the others are like it.
    samples = given.samples(top[:1])
    leads = (samples - given.samples(one[:1]) for one in given.predictions)
    errors = (float(one.std(ddof=1)) if len(one) > 1 else 0.0 for one in leads)
    near = (i for i, error in enumerate(errors) if scores[i] >= max(scores) - error)
    return _only(next(near), len(scores))


def best(given: OutOfFold) -> Array:
    """All weight on the candidate of the highest score; of equals, that of the lowest loss."""
    merits = [(given.score(one), -task_of(given.task).log_loss(one, given.targets)) for one in given.predictions]
    return _only(merits.index(max(merits)), len(merits))


def _only(chosen: int, candidates: int) -> Array:
    return np.asarray(np.eye(candidates)[chosen])


def ensemble(given: OutOfFold) -> Array:
    """Weights by greedy selection with replacement."""
    counts, total = np.zeros(len(given.predictions)), np.zeros(given.predictions.shape[1:])
    chosen, lowest, since = counts, np.inf, 0
    for size in range(1, STEPS + 1):
        losses = [task_of(given.task).log_loss((total + one) / size, given.targets) for one in given.predictions]
        added = int(np.argmin(losses))
        counts[added] += 1
        total += given.predictions[added]
        since += 1
        if losses[added] < lowest:
            chosen, lowest, since = counts.copy(), losses[added], 0
        if since == PATIENCE:
            break
    return np.asarray(chosen / chosen.sum())


def clearly_behind(given: OutOfFold, rows: NDArray[np.int64], predictions: Array) -> str:
    """Why a candidate that is not finished cannot be part of the answer; empty if it may be.

    On the subgraphs it has predicted, ``rows``, it is clearly behind the best of the others by a paired test, and an
    ensemble that is selected on them gives it no weight. ``predictions`` are its own (1, m, outputs).
    """
    top = int(best(given).argmax())
    others, repeated = given.take(rows), predictions[None].repeat(given.predictions.shape[1], axis=1)
    everyone = replace(others, predictions=np.concatenate([others.predictions, repeated]))
    ours, theirs = everyone.predictions[[top, -1]]
    if chance_of_lead(everyone, ours, theirs) > BEHIND or ensemble(everyone)[-1] > 0:
        return ""
    score, highest = everyone.score(theirs), everyone.score(ours)
    return f"{score:.3f} where the best has {highest:.3f}, and no weight in an ensemble"


def chance_of_lead(given: OutOfFold, ours: Array, theirs: Array) -> float:
    """The p-value of a paired lead: by swaps; for the metric of a ranking, by its mean and deviation over samples."""
    if given.metric != HEADLINE:
        leads = given.samples(ours) - given.samples(theirs)
        if len(leads) < 2:
            return 1.0
        return chance_of_mean(float(leads.mean()), float(leads.std(ddof=1)), given)
    return swap_test(*(given.terms(one).joined(given.units) for one in (ours, theirs)))


def chance_of_mean(mean: float, error: float, given: OutOfFold) -> float:
    """The p-value of a mean lead with a standard error, by Student's distribution.

    It has one degree of freedom less than rarer units: of three positive subgraphs among hundreds, these three make up
    the error, which is then uncertain itself.
    """
    return float(scipy.stats.t.sf(mean / max(error, _TINY), max(1, given.rarer_units - 1)))


RULES: dict[str, Callable[[OutOfFold], Array]] = {"simplest": simplest, "best": best, "ensemble": ensemble}
"""The rules, the simpler ones first."""


def choose(given: OutOfFold, parts: NDArray[np.int64]) -> Choice:
    """Compare the rules by cross-validation over ``parts`` (n,), and apply the one that wins to all predictions."""
    if len(given.predictions) == 1:
        return Choice("best", np.ones(1), {"best": given.score(given.predictions[0])})
    scores, losses, task = {}, {}, task_of(given.task)
    for name, rule in RULES.items():
        honest = np.empty(given.predictions.shape[1:])
        for part in np.unique(parts):
            weights = rule(given.take(np.flatnonzero(parts != part)))
            rows = np.flatnonzero(parts == part)
            honest[:, rows] = given.take(rows).mixed(weights)
        scores[name] = given.score(honest)
        outputs = calibrate(honest, given.targets, given.task).apply(honest, given.task)
        losses[name] = task.log_loss(task.scores(outputs), given.targets)
    near = [name for name in RULES if scores[name] >= max(scores.values()) - MARGIN]
    chosen = min(near, key=lambda name: losses[name])  # the first of equals
    return Choice(chosen, RULES[chosen](given), scores)


_WIDEST = 3.0  # bound of the logarithm of a scale
_HOLD_OF_CLASSES = 0.1  # penalty on the offset of two classes: a rare one of weight 50 needs an offset of 4


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Scale and offset, (1,) or (labels,), that map mean probabilities to outputs, and thresholds of labels, if any."""

    scale: NDArray[np.float64]
    offset: NDArray[np.float64]
    thresholds: NDArray[np.float64]

    def apply(self, scores: Scores, task: TaskName, target: Standard | None = None) -> Scores:
        """Calibrated outputs (:meth:`~subgnn.task.Task.calibrated`). Shapes: scores, returns: (..., outputs)."""
        return task_of(task).calibrated(scores, self.scale, self.offset, target)


def calibrate(predictions: NDArray[np.float64], targets: NDArray[np.float64], task: TaskName) -> Calibration:
    """Fit scale, offset and thresholds to out-of-fold predictions (repeats, n, outputs).

    The offset makes the mean probability of a class or label its share of the subgraphs, also where a model was fitted
    with weights of classes. More than two classes have a scale alone.
    """
    one = Calibration(np.ones(1), np.zeros(1), np.empty(0))
    kind = task_of(task)
    if kind.real:
        return one
    outputs, repeats = kind.outputs(predictions), len(predictions)
    if isinstance(kind, Binary) and outputs.shape[2] == 2:
        of_second = _platt(outputs[:, :, 1] - outputs[:, :, 0], targets, hold=_HOLD_OF_CLASSES)
        return Calibration(np.array(of_second[:1]), np.array([0.0, of_second[1]]), np.empty(0))
    if not isinstance(kind, MultiLabel):
        y = kind.indicators(targets, outputs.shape[2])

        def loss(log_scale: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            logits = np.exp(log_scale) * outputs
            logs = scipy.special.log_softmax(logits, axis=2)
            slope = ((np.exp(logs) - y) * logits).sum() / repeats + 2 * log_scale
            return float(-(y * logs).sum() / repeats + log_scale[0] ** 2) / len(y), slope / len(y)

        return Calibration(np.exp(minimise_in_box(loss, [0.0], [(-_WIDEST, _WIDEST)])), np.zeros(1), np.empty(0))
    pairs = [_platt(outputs[:, :, label], targets[:, label]) for label in range(targets.shape[1])]
    scale, offset = (np.array(column) for column in zip(*pairs, strict=True))
    threshold = kind.best_threshold(scipy.special.expit(scale * outputs + offset), targets)
    return Calibration(scale, offset, np.full(len(scale), threshold))


def _platt(log_odds: NDArray[np.float64], truth: NDArray[np.float64], *, hold: float = 1.0) -> tuple[float, float]:
    """Scale and offset of one label, or of the second of two classes. Shapes: log_odds: (repeats, n). truth: (n,)."""
    holds = np.array([1.0, hold])

    def loss(given: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scaled = np.exp(given[0]) * log_odds
        outputs = scaled + given[1]
        # -log of the probability of what is true
        wrong = np.logaddexp(0, np.where(truth > 0, -outputs, outputs))
        gap = scipy.special.expit(outputs) - (truth > 0)
        slope = np.array([(gap * scaled).sum(), gap.sum()]) / len(log_odds) + 2 * holds * given
        return float(wrong.sum() / len(log_odds) + (holds * given**2).sum()) / len(truth), slope / len(truth)

    found = minimise_in_box(loss, [0.0, 0.0], [(-_WIDEST, _WIDEST), (-10.0, 10.0)])
    return float(np.exp(found[0])), float(found[1])
