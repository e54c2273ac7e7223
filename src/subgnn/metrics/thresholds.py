"""Choose thresholds of probabilities for a stated aim, and count what they give: precision, recall and cost.

A subgraph is an alert if the probability of the positive class, or of the label, is above the threshold. Of two classes
the positive one is the rarer in the training split, of equally many the second. Aims are a least precision, for the
highest recall; a least recall, for the highest precision; the highest F1; and the lowest cost of false alerts and
missed positive subgraphs. Thresholds lie halfway between two neighbouring probabilities, and equal ones are never
divided. Where no threshold reaches a precision, one half is kept.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from subgnn.config.files import parse_table
from subgnn.errors import UserError, excerpt
from subgnn.metrics.significance import wilson
from subgnn.ranking import alerts_by_score
from subgnn.result import Alerts, LabelAlerts, ThresholdReport
from subgnn.task import TaskName, Thresholds, task_of

NONE = "none"  # no aim: the likelier class, and labels above one half
_WHERE = "--threshold"
_BELOW = -(2.0**-10)
_COST = re.compile(r"cost=(fp|fn):(\S+?),\s*(?!\1)(fp|fn):(\S+)")


@dataclass(frozen=True, slots=True)
class Aim:
    """What a threshold is chosen for."""

    kind: Literal["precision", "recall", "f1", "cost"]
    least: float = 0.0
    false_alert: float = 1.0
    missed: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Self:
        hint = "accepted: precision=P or recall=R, above 0 and up to 1; f1; cost=fp:A,fn:B, both above 0"
        wrong = UserError(f"the threshold is {excerpt(text)}", where=_WHERE, hint=hint)
        kind, _, number = text.strip().partition("=")
        try:
            if kind == "f1" and not number:
                return cls("f1")
            if kind in ("precision", "recall") and 0 < float(number) <= 1:
                return cls("precision" if kind == "precision" else "recall", least=float(number))
            if (found := _COST.fullmatch(text.strip())) is not None:
                costs = {found[1]: float(found[2]), found[3]: float(found[4])}
                if all(0 < cost < 1e12 for cost in costs.values()):
                    return cls("cost", false_alert=costs["fp"], missed=costs["fn"])
        except ValueError:
            raise wrong from None
        raise wrong

    def best(self, alerts: NDArray[Any], hits: NDArray[Any], positives: int) -> tuple[int, bool]:
        """The place of the best cut, and whether it reaches the aim, given the alerts and hits of each cut, rising."""
        precision, recall = hits / np.maximum(alerts, 1), hits / max(positives, 1)
        if self.kind == "precision":
            enough = (precision >= self.least) & (hits > 0)
            if enough.any():
                return _last_of_highest(np.where(enough, hits, -1), -alerts), True
            return _last_of_highest(precision, hits), False
        if self.kind == "recall":
            return _last_of_highest(np.where(recall >= self.least, precision, -1.0), hits), True
        if self.kind == "cost":
            cost = self.false_alert * (alerts - hits) + self.missed * (positives - hits)
            return _last_of_highest(-cost, -alerts), True
        return _last_of_highest(2 * hits / (alerts + positives), precision), True


def _last_of_highest(first: NDArray[Any], second: NDArray[Any]) -> int:
    """The place of the highest first number; of equals, that of the highest second one."""
    return int(np.lexsort((second, first))[-1])


def count_alerts(threshold: float, scores: NDArray[Any], truth: NDArray[Any]) -> Alerts:
    """What a threshold gives for scores (n,), or the means for those of repeats (repeats, n).

    With the 95 % interval of precision; None for what is undefined.
    """
    above, times = scores > np.float32(threshold), 1 if scores.ndim == 1 else len(scores)
    alerts, hits = float(above.sum()) / times, float((above & (truth > 0)).sum()) / times
    positives, precision = float((truth > 0).sum()), hits / alerts if alerts else None
    return Alerts(
        alerts=alerts,
        hits=hits,
        positives=positives,
        subgraphs=len(truth),
        precision=precision,
        precision_interval=None if precision is None else wilson(precision, round(max(1, alerts))),
        recall=hits / positives if positives else None,
    )


def choose_threshold(scores: NDArray[Any], truth: NDArray[Any], aim: Aim) -> tuple[float, bool]:
    """The threshold of scores ([repeats,] n) best for an aim, .5 without positives, and whether it reaches it."""
    if not (truth > 0).any():
        return 0.5, False
    flat, all_truth = scores.reshape(-1), np.broadcast_to(truth, scores.shape).reshape(-1)
    values, alerts, hits = alerts_by_score(flat, all_truth)
    # Before the first cut nothing is an alert.
    alerts, hits = np.append(0, alerts), np.append(0, hits)
    place, reached = aim.best(alerts, hits, int(hits[-1]))
    # Below 0, where even a probability of 0 is an alert.
    ends = np.concatenate([[1.0], values, [0.0 if values[-1] > 0 else _BELOW]])
    upper, lower = ends[place], ends[place + 1]
    halfway = np.float32((upper + lower) / 2)
    # There may be no number between two probabilities.
    return float(halfway if halfway < upper else lower), reached


class Decision(ThresholdReport):
    """Thresholds as a model has them, of the positive of two classes or of all labels; ``chosen`` has their effects."""

    __slots__ = ()

    @classmethod
    def choose(
        cls,
        aim: str,
        scores: NDArray[Any],
        targets: NDArray[Any],
        *,
        task: TaskName,
        classes: tuple[str, ...],
        positive: int,
        chosen_on: str,
    ) -> Self:
        """Choose a threshold of the positive class, or of each label, from scores ([repeats,] n, classes)."""
        wanted, found = Aim.parse(aim), []
        columns = task_of(task).indicators(targets, len(classes))
        for column, label in enumerate(classes):
            if positive not in (column, -1):
                continue
            own, truth = scores[..., column].astype(np.float32), columns[:, column]
            best, reached = choose_threshold(own, truth, wanted)
            nearest = count_alerts(best, own, truth)
            one = LabelAlerts(label=label, threshold=best, reached=reached, chosen=nearest)
            if not reached:
                one = replace(one, threshold=0.5, chosen=count_alerts(0.5, own, truth), nearest=nearest)
            found.append(one)
        return cls(aim=aim, chosen_on=chosen_on, labels=tuple(found))

    def thresholds(self, classes: tuple[str, ...]) -> Thresholds:
        """As :func:`~subgnn.task.Task.decide` takes them (classes,)."""
        values = {one.label: one.threshold for one in self.labels}
        return np.array([values.get(name, np.nan) for name in classes], np.float32)

    def counts(self, scores: NDArray[Any], targets: NDArray[Any], classes: tuple[str, ...]) -> list[Alerts]:
        """What the thresholds give on other data, scores (n, classes) and targets, in the order of ``labels``."""
        found = []
        for one in self.labels:
            column = classes.index(one.label)
            truth = targets[:, column] if targets.ndim == 2 else targets == column
            found.append(count_alerts(one.threshold, scores[:, column].astype(np.float32), truth))
        return found

    def report(self, **others: list[Alerts]) -> ThresholdReport:
        """What the result of a run says of the thresholds; ``others`` is what they give on splits, by name."""
        given: dict[str, Any] = others
        splits = [{split: alerts[i] for split, alerts in given.items()} for i in range(len(self.labels))]
        labels = tuple(replace(one, **counts) for one, counts in zip(self.labels, splits, strict=True))
        return ThresholdReport(aim=self.aim, chosen_on=self.chosen_on, labels=labels)

    @classmethod
    def from_json(cls, content: Any, classes: tuple[str, ...], task: TaskName) -> Self:
        """From a checkpoint; raises an error for anything that :meth:`choose` does not give."""
        decision = parse_table(cls, content, "decision")
        Aim.parse(decision.aim)
        names, kind = [one.label for one in decision.labels], task_of(task)
        fits = kind.has_thresholds and names and names == (list(classes) if kind.several else names[:1])
        if not fits or not all(one.label in classes and _BELOW <= one.threshold <= 1 for one in decision.labels):
            raise ValueError("its thresholds do not fit its classes")
        return decision


def threshold_notes(report: ThresholdReport) -> list[str]:
    """A line about each aim that no threshold reaches, with what can be reached."""
    notes, on = [], "out of fold" if report.chosen_on == "out-of-fold" else "on validation"
    for one in report.labels:
        if one.reached or one.nearest is None:
            continue
        near = one.nearest
        if not near.positives:
            found = "no subgraph has this label there"
        elif near.precision is None or near.recall is None:
            found = "no subgraph can be told from the others"
        else:
            found = f"the highest precision is {near.precision:.3f}, with a recall of {near.recall:.3f}"
        notes.append(f"{one.label}: no threshold reaches {report.aim} {on} ({found}); 0.5 is kept")
    return notes


def check_aim(aim: str, task: TaskName) -> None:
    """Raise an error for an aim that is malformed or does not apply to the task."""
    if aim == NONE:
        return
    Aim.parse(aim)
    if not task_of(task).has_thresholds:
        hint = "thresholds need two classes, or several labels per subgraph; leave it out"
        raise UserError(f"the task is {task}", where=_WHERE, hint=hint)
