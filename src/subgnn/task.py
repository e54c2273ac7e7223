"""The tasks: what the label of a subgraph is, and the loss, predictions and metrics that depend on it.

A task is one of five names in files (the dataset card, run.json, a checkpoint) and one object in memory:
``task_of(subgraphs.task)``. The object has no state.

============= ====================== ============================== ====================================
task          target                 output of a model              probability
============= ====================== ============================== ====================================
binary        (n,) class 0 or 1      (n, 2) logits                  softmax; the positive class may have a threshold
multi-class   (n,) class             (n, classes) logits            softmax
multi-label   (n, labels) 0 and 1    (n, labels) logits             sigmoid; each label has a threshold
regression    (n,) value             (n, 1) standardised value      none: the value stands in for it
unlabelled    none                   none                           none
============= ====================== ============================== ====================================

*Outputs* are what a model gives and what the loss takes. *Scores* are probabilities, or values in the unit of the
label, (n, outputs). *Predictions* are what is decided, of the shape of targets.

Of ``one_class``, ``several`` and ``real``, one is true for labelled subgraphs: models that fit classes, labels and
values in different ways ask these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.errors import UserError, choices, excerpt
from subgnn.ranking import ranking_metric, rarer_class, recall_count

if TYPE_CHECKING:
    from torch import Tensor

TaskName = Literal["multi-class", "binary", "multi-label", "regression", "unlabelled"]
Thresholds = NDArray[np.float32] | float
"""Probabilities above which a class or label is predicted.

Of several labels, one for each, or one for all. Of two classes, an array has the threshold of the positive class, and
NaN for the other, which is predicted where the first is not; without an array, the likelier one is predicted.
"""
Scores = NDArray[np.float64]
_SMALLEST = 1e-7  # no probability below it, so that logarithms are finite
RARE = 0.1  # the share of the subgraphs below which a class is rare, so that models are compared by how they rank it


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """A mean and a deviation (F,), used to standardise."""

    mean: Scores
    deviation: Scores

    @classmethod
    def of(cls, values: Scores) -> Standard:
        """Mean and deviation of the given rows; a column that does not vary becomes 0, whatever its scale."""
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        varies = values.max(axis=0) > values.min(axis=0)  # rounding of the mean leaves a deviation to equal values
        for column in np.flatnonzero(varies & ~(np.isfinite(deviation) & (deviation > np.sqrt(np.finfo(float).tiny)))):
            largest = np.abs(values[:, column] - mean[column]).max()
            deviation[column] = largest * ((values[:, column] - mean[column]) / largest).std()
        return cls(np.where(varies, mean, values[0]), np.where(varies & (deviation > 0), deviation, 1.0))

    def __call__(self, values: Scores) -> NDArray[np.float32]:
        return ((values - self.mean) / self.deviation).astype(np.float32)


def f1_score(hits: Tensor, total: Tensor) -> Tensor:
    """2 TP / (2 TP + FP + FN), of the true positives and of the predicted and the true ones together; 0 without any."""
    return 2 * hits.double() / total.clamp(min=1)


class Task:
    """Subgraphs without labels, and what all tasks share."""

    name: ClassVar[TaskName] = "unlabelled"
    one_class: ClassVar[bool] = False
    several: ClassVar[bool] = False
    real: ClassVar[bool] = False
    has_thresholds: ClassVar[bool] = False
    headline: ClassVar[str] = "micro_f1"
    headline_word: ClassVar[str] = "micro-F1"
    word: ClassVar[str] = "class"
    constant_word: ClassVar[str] = "most frequent class"

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes, one or several per subgraph."""
        return self.one_class or self.several

    def num_outputs(self, classes: int) -> int:
        return 1 if self.real else classes

    def indicators(self, targets: NDArray[Any], outputs: int) -> Scores:
        """Targets as columns (n, outputs): 1 for a class or label that a subgraph has, else 0; or values."""
        return np.asarray(targets, np.float64).reshape(len(targets), outputs)

    def counts(self, targets: NDArray[Any], classes: int) -> NDArray[np.int64]:
        """The number of subgraphs of each class (classes,); values have none."""
        return np.zeros(classes, np.int64)

    def names(self, target: NDArray[Any], classes: Sequence[str]) -> list[str]:
        """One target in words: its class, its labels, or its value."""
        return []

    def columns(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the columns of scores: the classes, or ``value``."""
        return (self.word,) if self.real else classes

    def loss(self, outputs: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Cross entropy; for multi-label, binary cross entropy on logits; for regression, squared error.

        ``weights`` of classes make it a mean by the weights of the subgraphs' classes; of several labels, it is a mean
        over all pairs of a subgraph and a label, and weights count for those that have it.
        """
        raise self._no("loss")

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Probabilities of classes in the precision of the outputs; for regression, the outputs themselves."""
        return outputs

    def scores(self, outputs: NDArray[np.floating], target: Standard | None = None) -> Scores:
        """Probabilities, or values in the unit of the label (..., outputs), which ``target`` has standardised."""
        raise self._no("scores")

    def outputs(self, scores: Scores, target: Standard | None = None) -> Scores:
        """Outputs with these scores, the inverse of :meth:`scores`. Shapes: (..., outputs), both."""
        raise self._no("outputs")

    def calibrated(
        self, scores: Scores, scale: NDArray[Any], offset: NDArray[Any], target: Standard | None = None
    ) -> Scores:
        """Calibrated outputs (..., outputs): scale * outputs + offset, each (1,) or (labels,)."""
        return np.asarray(scale * self.outputs(scores, target) + offset)

    def decide(self, scores: NDArray[Any], thresholds: Thresholds = 0.5) -> NDArray[Any]:
        """Classes (n,), labels as 0 and 1 (n, labels), or values (n,), from scores (n, outputs).

        Example:
            >>> scores = np.array([[0.7, 0.3], [0.9, 0.1]], np.float32)
            >>> Binary().decide(scores).tolist(), Binary().decide(scores, np.array([np.nan, 0.2])).tolist()
            ([0, 0], [1, 0])
        """
        raise self._no("predictions")

    def predictions(self, outputs: Tensor, thresholds: Thresholds = 0.5) -> Tensor:
        """As :meth:`decide`, from outputs."""
        import torch

        scores = self.probabilities(outputs.detach()).cpu().numpy()
        return torch.from_numpy(self.decide(scores, thresholds)).to(outputs.device)

    def best_threshold(self, scores: Scores, truth: NDArray[Any]) -> float:
        """The threshold of all labels, of (repeats, n, outputs), with the highest micro-F1; others have one half."""
        return 0.5

    def metrics(
        self,
        outputs: Tensor,
        targets: Tensor,
        *,
        unit: float = 1.0,
        thresholds: Thresholds = 0.5,
        select_by: str = "auto",
    ) -> dict[str, float]:
        """micro-F1, macro-F1, accuracy and AUROC; for regression, mean absolute and root mean square error, and R^2.

        AUROC is the mean over classes, one against the rest; a class that no subgraph or every subgraph has is left
        out. Multi-label accuracy counts a subgraph as correct when all its labels are. For two classes there is also
        AUPRC, the area under the precision-recall curve (average precision) of the rarer class, of equally many of the
        second; of several labels, the mean over those that can be ranked. ``recall@k`` as ``select_by`` adds this
        metric (:func:`~subgnn.ranking.recall_at`), and the metric that it names comes first. The two errors of
        regression are multiplied by ``unit``.
        """
        outputs, targets = outputs.detach().float().cpu(), targets.cpu()
        found = self._agreement(self.predictions(outputs, thresholds), targets, outputs.shape[1])
        found |= {name: unit * found[name] for name in ("mae", "rmse") if name in found}
        ranked = ["auroc"] * self.has_classes + ["auprc"] * self.has_thresholds
        ranked += [select_by] * (self.has_thresholds and recall_count(select_by) is not None)
        scores, truth = self.probabilities(outputs).numpy(), targets.numpy()
        found |= {name: ranking_metric(name, scores, truth) for name in ranked}
        return {name: found[name] for name in (select_by, *found) if name in found}

    def _agreement(self, found: Tensor, targets: Tensor, classes: int) -> dict[str, float]:
        raise self._no("metrics")

    def selection_metric(self, select_by: str = "auto") -> str:
        """The metric that ``training.select_by`` names, if the task has it; ``auto`` is the headline metric.

        For real values, that is R^2, by which candidates of a portfolio are selected; epochs are selected by the loss.

        Example:
            >>> Regression().selection_metric("auto"), Binary().selection_metric("recall@50")
            ('r2', 'recall@50')
        """
        if select_by == "auto":
            return self.headline
        known = ["micro_f1", "macro_f1", "accuracy", "auroc"] if self.has_classes else [self.headline]
        known += ["auprc", "recall@K"] * self.has_thresholds
        if ("recall@K" if recall_count(select_by) is not None else select_by) not in known:
            what = f"training.select_by is {excerpt(select_by)}, but the task is {self.name}"
            hint = choices(select_by, ["auto", *known])
            hint += "; K is a whole number from 1" if "recall@K" in known else ""
            raise UserError(what, where="train", hint=hint)
        return select_by

    def default_metric(self, targets: NDArray[Any]) -> str:
        """The metric of selection for such targets: of two classes, AUPRC if one is :data:`RARE`; else the headline.

        Where 2 % are positive, never saying so has a micro-F1 of .98. Several labels need no other metric: micro-F1
        does not count labels that are absent and not predicted.
        """
        return self.headline

    def score_terms(self, predicted: NDArray[Any], true: NDArray[Any]) -> tuple[Scores, Scores]:
        """The terms (n,) whose sums have the ratio micro-F1, for real values R^2; predicted and true as targets."""
        raise self._no("score")

    def log_loss(self, scores: Scores, targets: NDArray[Any]) -> float:
        """The mean negative log-likelihood of scores (repeats, n, outputs); for real values, the mean squared error."""
        return float(self.losses(scores, targets).mean())

    def losses(self, scores: Scores, targets: NDArray[Any]) -> Scores:
        """The negative log-likelihood of each subgraph, or its squared error (repeats, n); the mean over labels."""
        raise self._no("loss")

    def confidences(self, scores: NDArray[Any], targets: NDArray[Any]) -> tuple[Scores, NDArray[np.bool_]]:
        """The probability of each predicted class, and whether it is correct (m,); of several labels, of every pair."""
        raise self._no("probabilities")

    def constant(self, train: NDArray[Any]) -> NDArray[Any]:
        """The best prediction that ignores the subgraph: the most frequent class, the mean, or a set of labels.

        Of the sets of the k most frequent labels, it is the one with the highest micro-F1 on the training split.

        Example:
            >>> MultiClass().constant(np.array([2, 0, 2])).item()
            2
            >>> MultiLabel().constant(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])).tolist()
            [1, 1, 0]
        """
        raise self._no("predictions")

    def positive(self, targets: NDArray[Any]) -> int:
        """The class that a threshold is for: of two the rarer in these targets, of equally many the second; else -1."""
        return -1

    def balanced_weights(self, targets: NDArray[Any], classes: int) -> Scores:
        """Weights (classes,) with which all classes count the same; labels, as much as their absence."""
        raise self._no("weights")

    def _no(self, what: str) -> TypeError:
        return TypeError(f"subgraphs of the task {self.name} have no {what}")


class MultiClass(Task):
    """One of several classes."""

    name: ClassVar[TaskName] = "multi-class"
    one_class: ClassVar[bool] = True

    def indicators(self, targets: NDArray[Any], outputs: int) -> Scores:
        return np.eye(outputs)[np.asarray(targets, np.int64)]

    def counts(self, targets: NDArray[Any], classes: int) -> NDArray[np.int64]:
        return np.bincount(targets.astype(np.int64), minlength=classes)

    def names(self, target: NDArray[Any], classes: Sequence[str]) -> list[str]:
        return [classes[int(target)]]

    def loss(self, outputs: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        from torch.nn import functional

        return functional.cross_entropy(outputs, targets.long(), weight=weights)

    def probabilities(self, outputs: Tensor) -> Tensor:
        return outputs.softmax(dim=1)

    def scores(self, outputs: NDArray[np.floating], target: Standard | None = None) -> Scores:
        values = np.asarray(outputs, np.float64)
        odds = np.exp(values - values.max(axis=-1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=-1, keepdims=True))

    def outputs(self, scores: Scores, target: Standard | None = None) -> Scores:
        return np.asarray(np.log(scores.clip(_SMALLEST)))

    def decide(self, scores: NDArray[Any], thresholds: Thresholds = 0.5) -> NDArray[Any]:
        return np.asarray(scores.argmax(axis=-1))

    def predictions(self, outputs: Tensor, thresholds: Thresholds = 0.5) -> Tensor:
        # Of outputs, since their probabilities may be rounded to the same number.
        return super().predictions(outputs, thresholds) if np.ndim(thresholds) else outputs.argmax(dim=1)

    def _agreement(self, found: Tensor, targets: Tensor, classes: int) -> dict[str, float]:
        truth = targets.long()
        accuracy = float((found == truth).float().mean())
        hits, predicted, true = (one.bincount(minlength=classes) for one in (truth[found == truth], found, truth))
        macro = f1_score(hits, predicted + true)[predicted + true > 0].mean()
        return {"micro_f1": accuracy, "macro_f1": float(macro), "accuracy": accuracy}

    def score_terms(self, predicted: NDArray[Any], true: NDArray[Any]) -> tuple[Scores, Scores]:
        return (predicted == true).astype(np.float64), np.ones(len(true))

    def losses(self, scores: Scores, targets: NDArray[Any]) -> Scores:
        chance = np.clip(scores, _SMALLEST, 1 - _SMALLEST)
        return np.asarray(-np.log(chance[:, np.arange(len(targets)), targets.astype(np.int64)]))

    def confidences(self, scores: NDArray[Any], targets: NDArray[Any]) -> tuple[Scores, NDArray[np.bool_]]:
        return scores.max(axis=1).astype(np.float64), scores.argmax(axis=1) == targets

    def constant(self, train: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.bincount(train.astype(np.int64)).argmax())

    def balanced_weights(self, targets: NDArray[Any], classes: int) -> Scores:
        counts = np.maximum(self.counts(targets, classes), 1)
        return np.asarray(len(targets) / (len(counts) * counts))


class Binary(MultiClass):
    """One of two classes, of which the rarer is the positive one."""

    name: ClassVar[TaskName] = "binary"
    has_thresholds: ClassVar[bool] = True

    def decide(self, scores: NDArray[Any], thresholds: Thresholds = 0.5) -> NDArray[Any]:
        if not np.ndim(thresholds):
            return np.asarray(scores.argmax(axis=-1))
        positive = int(np.flatnonzero(~np.isnan(thresholds))[0])
        return np.where(scores[:, positive] > np.asarray(thresholds)[positive], positive, 1 - positive)

    def positive(self, targets: NDArray[Any]) -> int:
        return rarer_class(targets)

    def default_metric(self, targets: NDArray[Any]) -> str:
        return "auprc" if 0 < (targets == rarer_class(targets)).sum() < RARE * len(targets) else self.headline


class MultiLabel(Task):
    """Any number of labels."""

    name: ClassVar[TaskName] = "multi-label"
    several: ClassVar[bool] = True
    has_thresholds: ClassVar[bool] = True
    word: ClassVar[str] = "label"
    constant_word: ClassVar[str] = "most frequent labels"

    def counts(self, targets: NDArray[Any], classes: int) -> NDArray[np.int64]:
        return np.asarray(targets.sum(axis=0, dtype=np.int64))

    def names(self, target: NDArray[Any], classes: Sequence[str]) -> list[str]:
        return [classes[int(label)] for label in np.flatnonzero(target)]

    def loss(self, outputs: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        from torch.nn import functional

        return functional.binary_cross_entropy_with_logits(outputs, targets.to(outputs.dtype), pos_weight=weights)

    def probabilities(self, outputs: Tensor) -> Tensor:
        return outputs.sigmoid()

    def scores(self, outputs: NDArray[np.floating], target: Standard | None = None) -> Scores:
        from scipy.special import expit

        return np.asarray(expit(np.asarray(outputs, np.float64)))

    def outputs(self, scores: Scores, target: Standard | None = None) -> Scores:
        from scipy.special import logit

        return np.asarray(logit(scores.clip(_SMALLEST, 1 - _SMALLEST)))

    def decide(self, scores: NDArray[Any], thresholds: Thresholds = 0.5) -> NDArray[Any]:
        return (scores > thresholds).astype(np.int64)

    def best_threshold(self, scores: Scores, truth: NDArray[Any]) -> float:
        """The threshold of the highest micro-F1, halfway between two probabilities; of equals the nearest to one half.

        Example:
            >>> MultiLabel().best_threshold(np.array([[[0.1, 0.4], [0.3, 0.2]]]), np.array([[0, 1], [1, 0]]))
            0.25
        """
        flat = scores.ravel()
        order = np.argsort(-flat, kind="stable")
        falling = flat[order]
        hits = np.cumsum(np.broadcast_to(truth, scores.shape).ravel()[order])
        # With the k highest predicted, micro-F1 is 2 hits / (k + all true ones). A cut between equals is none.
        cuts = np.append(falling[:-1] > falling[1:], True)
        f1 = np.where(cuts, 2 * hits / (np.arange(1, len(flat) + 1) + max(1.0, hits[-1])), -1.0)
        halfway = (falling + np.append(falling[1:], 0.0)) / 2
        top = np.flatnonzero(f1 >= f1.max() - 1e-12)
        return float(halfway[top[np.argmin(np.abs(halfway[top] - 0.5))]])

    def _agreement(self, found: Tensor, targets: Tensor, classes: int) -> dict[str, float]:
        truth, found = targets.long(), found.long()
        hits, total = (found * truth).sum(dim=0), (found + truth).sum(dim=0)
        micro, macro = f1_score(hits.sum(), total.sum()), f1_score(hits, total).mean()
        accuracy = (found == truth).all(dim=1).float().mean()
        return {"micro_f1": float(micro), "macro_f1": float(macro), "accuracy": float(accuracy)}

    def score_terms(self, predicted: NDArray[Any], true: NDArray[Any]) -> tuple[Scores, Scores]:
        twice = 2.0 * (predicted * true).sum(axis=1)
        return twice, twice + (predicted != true).sum(axis=1)

    def losses(self, scores: Scores, targets: NDArray[Any]) -> Scores:
        chance = np.clip(scores, _SMALLEST, 1 - _SMALLEST)
        return np.asarray(-(targets * np.log(chance) + (1 - targets) * np.log1p(-chance)).mean(axis=2))

    def confidences(self, scores: NDArray[Any], targets: NDArray[Any]) -> tuple[Scores, NDArray[np.bool_]]:
        return scores.reshape(-1).astype(np.float64), (targets == 1).reshape(-1)

    def constant(self, train: NDArray[Any]) -> NDArray[Any]:
        order = np.argsort(-train.sum(axis=0, dtype=np.int64), kind="stable")
        sets = np.zeros((len(order), len(order)), np.int64)
        for k in range(len(order)):
            sets[k, order[: k + 1]] = 1
        sums = [[terms.sum() for terms in self.score_terms(np.broadcast_to(one, train.shape), train)] for one in sets]
        return np.asarray(sets[int(np.argmax([gain / max(weight, 1.0) for gain, weight in sums]))])

    def balanced_weights(self, targets: NDArray[Any], classes: int) -> Scores:
        positive = np.maximum(targets.sum(axis=0, dtype=np.float64), 1)
        return np.asarray((len(targets) - positive) / positive)


class Regression(Task):
    """A real value."""

    name: ClassVar[TaskName] = "regression"
    real: ClassVar[bool] = True
    headline: ClassVar[str] = "r2"
    headline_word: ClassVar[str] = "R2"
    word: ClassVar[str] = "value"
    constant_word: ClassVar[str] = "mean"

    def names(self, target: NDArray[Any], classes: Sequence[str]) -> list[str]:
        return [f"{float(target):.6g}"]

    def loss(self, outputs: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        from torch.nn import functional

        return functional.mse_loss(outputs.squeeze(1), targets.to(outputs.dtype))

    def scores(self, outputs: NDArray[np.floating], target: Standard | None = None) -> Scores:
        values = np.asarray(outputs, np.float64)
        return values if target is None else values * target.deviation + target.mean

    def outputs(self, scores: Scores, target: Standard | None = None) -> Scores:
        return scores if target is None else (scores - target.mean) / target.deviation

    def decide(self, scores: NDArray[Any], thresholds: Thresholds = 0.5) -> NDArray[Any]:
        return scores[..., 0]

    def _agreement(self, found: Tensor, targets: Tensor, classes: int) -> dict[str, float]:
        truth = targets.float()
        error, spread = found - truth, (truth - truth.mean()).square().sum()
        r2 = float(1 - error.square().sum() / spread) if spread > 0 else float("nan")
        return {"mae": float(error.abs().mean()), "rmse": float(error.square().mean().sqrt()), "r2": r2}

    def score_terms(self, predicted: NDArray[Any], true: NDArray[Any]) -> tuple[Scores, Scores]:
        spread = (true - true.mean()) ** 2
        # Relative to the total variation, so that the unit of the values does not matter.
        whole = spread.sum() if spread.sum() > 0 else np.nan
        return (spread - (true - predicted) ** 2) / whole, spread / whole

    def losses(self, scores: Scores, targets: NDArray[Any]) -> Scores:
        return np.asarray((scores[:, :, 0] - targets) ** 2)

    def constant(self, train: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(train.mean())


TASKS: dict[TaskName, Task] = {task.name: task for task in (MultiClass(), Binary(), MultiLabel(), Regression(), Task())}


def task_of(name: TaskName) -> Task:
    """Look up a task by name."""
    return TASKS[name]


_METRIC_WORDS = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "mae": "mean absolute error",
    "rmse": "root mean square error",
    "r2": "R²",
}


def metric_name(name: str) -> str:
    """A metric in words; ``recall@50`` as it is."""
    return _METRIC_WORDS.get(name, name)


def metric_text(name: str, value: float) -> str:
    """Format a metric: three decimals; an error of regression, in the label's unit, in four significant digits.

    Example:
        >>> metric_text("r2", 0.71234), metric_text("mae", 0.00012346), metric_text("rmse", 12345678.9)
        ('0.712', '0.0001235', '1.235e+07')
    """
    return f"{value:.4g}" if name in ("mae", "rmse") else f"{value:.3f}"
