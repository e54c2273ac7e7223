"""Determine which kind of signal labels carry, from out-of-fold predictions of models that see different things.

Models are grouped by what they see of a subgraph (:meth:`~subgnn.models.interface.Model.sees`): its nodes, its shape,
its nodes with those around them, or everything. The best of each group is compared with a guess that ignores the
subgraph (the most frequent class, equal scores for a ranking, or the mean of real values) and with the best of simpler
groups. A model is *clearly* better if

1. its lead is at least :data:`MARGIN` of what the guess leaves to gain, 1 - its score, and
2. the p-value of the lead is below :data:`LEVEL` / comparisons, by a paired test over subgraphs
   (:func:`~subgnn.training.ensemble_selection.chance_of_lead`).

A model is also clearly better than the guess if both hold for log-likelihoods: that of its calibrated probabilities,
against that of the shares of the classes. Decisions may show nothing where probabilities do. No p-value of a lead over
the guess is below the chance of predicting all labels by luck: with k of n positive, 1 / C(n, k).

Comparisons is the number of tests that could have been made: the best of several is high by luck alone, and dividing by
their number (Bonferroni) corrects for that, conservatively.

==================  ================================================================================================
signal              condition
==================  ================================================================================================
``shape``           a model that sees shape is clearly better than the guess
``identity``        a model that sees nodes is, and clearly better than shape where that is a signal, too
``surroundings``    a model that sees surroundings is, and clearly better than all simpler models that are; if none
                    is, than all simpler models
``beyond``          the same of a model that sees everything
``unplaced``        some model is clearly better than the guess, but none of these holds
``undecided``       no model is, and not even one without errors would be
``none``            no model is, but one without errors would be
==================  ================================================================================================

Models that see nodes see size, too: more nodes make a larger sum. So labels that shape explains as well are not
evidence of identity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.models.interface import View
from subgnn.task import metric_name, task_of
from subgnn.training.ensemble_selection import HEADLINE, OutOfFold, calibrate, chance_of_lead, chance_of_mean

Signal = Literal["identity", "shape", "surroundings", "beyond", "unplaced", "undecided", "none"]
LEVEL, MARGIN = 0.05, 0.02
_VIEWS: dict[View, Signal] = {"nodes": "identity", "shape": "shape"}
_VIEWS |= {"surroundings": "surroundings", "everything": "beyond"}
_SIMPLER: dict[View, tuple[View, ...]] = {
    "nodes": ("shape",),
    "shape": (),
    "surroundings": ("nodes", "shape"),
    "everything": ("nodes", "shape", "surroundings"),
}
_DEPENDS_ON: dict[Signal, tuple[str, str]] = {
    "identity": ("which nodes a subgraph has", "which nodes it has"),
    "shape": ("the shape of a subgraph", "its shape"),
    "surroundings": ("the nodes around a subgraph", "the nodes around it"),
    "beyond": ("more than nodes, shape or surroundings alone", "more than each of these alone"),
}
"""What labels depend on, in words: at the beginning of a list, and later."""


@dataclass(frozen=True, slots=True)
class JudgedModel:
    """A model of the out-of-fold predictions: what it sees of a subgraph, and whether it is fitted in one go."""

    name: str
    sees: View
    simple: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """The signals that labels carry, in words, too."""

    signals: tuple[Signal, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """A model with its predictions (repeats, n, outputs) and its score."""

    name: str
    predictions: NDArray[np.float64]
    score: float

    def __str__(self) -> str:
        return f"{self.name} {self.score:.3f}"


def signal_of(models: Sequence[JudgedModel], given: OutOfFold, untried: Sequence[str] = ()) -> Verdict:
    """Which kind of signal the labels carry, by the models of ``given.predictions``; ``untried`` ones may find more.

    Example:
        >>> targets = np.arange(90) % 3
        >>> given = OutOfFold(np.eye(3)[targets][None, None], targets, "multi-class", np.arange(90))
        >>> print(*signal_of([JudgedModel("bag", "nodes")], given).sentences)
        The labels depend on which nodes a subgraph has (bag 1.000); always predicting the most frequent class ...
    """
    scored = [_Scored(model.name, one, given.score(one)) for model, one in zip(models, given.predictions, strict=True)]
    groups = {view: [scored[i] for i, model in enumerate(models) if model.sees == view] for view in _VIEWS}
    sizes = {view: len(group) for view, group in groups.items()}
    # Each is compared with the guess twice: by the metric, and by likelihood.
    tests = sum(size * (2 + sum(sizes[other] for other in _SIMPLER[view])) for view, size in sizes.items())
    simple = [scored[i] for i, model in enumerate(models) if model.simple and model.sees in _VIEWS]
    tests += len(simple) * (sum(sizes.values()) - len(simple))
    # The guess is always the most frequent class, or the mean; for a ranking, equal scores of all subgraphs.
    task, shape = task_of(given.task), given.predictions.shape[2:]
    constant = np.broadcast_to(task.constant(given.targets), given.targets.shape)
    guess = task.indicators(constant, shape[1]) if given.metric == HEADLINE else np.zeros(shape)
    return _Comparison(
        given=given,
        best={view: _best(group) for view, group in groups.items() if group},
        simple=_best(simple) if simple else None,
        guess=_Scored("", guess[None], given.score(guess[None])),
        level=LEVEL / max(1, tests),
        untried=untried,
    ).verdict()


def _best(models: Sequence[_Scored]) -> _Scored:
    return max(models, key=lambda model: model.score)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The best model of each group and the best simple model, compared at a significance ``level``."""

    given: OutOfFold
    best: dict[View, _Scored]
    simple: _Scored | None
    guess: _Scored
    level: float
    untried: Sequence[str]

    def verdict(self) -> Verdict:
        by_metric = [view for view, model in self.best.items() if self._beats_guess(model)]
        clear = [view for view, model in self.best.items() if view in by_metric or self._is_likelier(model.predictions)]
        if not clear:
            return self._no_signal()
        views = [view for view in clear if self._is_signal(view, clear)]
        words = [self._signal_words(views, clear)]
        if not by_metric:
            better = f"no {self._metric} is clearly higher than that of {self._guess_words}"
            words.append(f"Only probabilities show it: {better}.")
        return Verdict(tuple(_VIEWS[view] for view in views) or ("unplaced",), (*words, self._advice()))

    @property
    def _metric(self) -> str:
        task, metric = task_of(self.given.task), self.given.metric
        return task.headline_word if metric == HEADLINE else metric_name(metric)

    @property
    def _guess_words(self) -> str:
        ranked = self.given.metric != HEADLINE
        return "ranking at random" if ranked else f"always predicting the {task_of(self.given.task).constant_word}"

    def _leads(self, ours: _Scored, theirs: _Scored, *, level: float | None = None) -> bool:
        wide = ours.score - theirs.score >= MARGIN * (1 - self.guess.score)
        return wide and chance_of_lead(self.given, ours.predictions, theirs.predictions) < (level or self.level)

    def _beats_guess(self, model: _Scored, *, level: float | None = None) -> bool:
        return self._least_chance < (level or self.level) and self._leads(model, self.guess, level=level)

    def _is_likelier(self, predictions: NDArray[np.float64]) -> bool:
        """Whether calibrated probabilities have a clearly higher likelihood than the shares of the classes."""
        given, task = self.given, task_of(self.given.task)
        if task.real or self._least_chance >= self.level:  # likelihood and R^2 are the same for real values
            return False
        outputs = calibrate(predictions, given.targets, given.task).apply(predictions, given.task)
        shares = task.indicators(given.targets, predictions.shape[2]).mean(axis=0)
        shared = np.broadcast_to(shares, predictions.shape[1:])[None]
        ours, theirs = (task.losses(scores, given.targets).mean(axis=0) for scores in (task.scores(outputs), shared))
        if theirs.mean() - ours.mean() < MARGIN * theirs.mean():
            return False
        leads = np.bincount(given.units, theirs - ours)
        return chance_of_mean(float(leads.mean()), float(leads.std(ddof=1)) / np.sqrt(len(leads)), given) < self.level

    @property
    def _least_chance(self) -> float:
        """How likely chance is to predict all labels: of a class or label, which units have it."""
        given = self.given
        if task_of(given.task).real:
            return 0.0
        has = task_of(given.task).indicators(given.targets, given.predictions.shape[3])
        count = int(given.units.max()) + 1
        having = np.array([len(np.unique(given.units[column > 0])) for column in has.T])
        return float(1 / scipy.special.binom(count, having).max())

    def _is_signal(self, view: View, clear: Sequence[View]) -> bool:
        """Whether a group that is clearly better than the guess is also better than simpler ones."""
        rivals = [other for other in _SIMPLER[view] if other in clear]
        if not rivals and view != "nodes":
            rivals = [other for other in _SIMPLER[view] if other in self.best]
        placed = bool(rivals) or view in ("nodes", "shape")
        return placed and all(self._leads(self.best[view], self.best[other]) for other in rivals)

    def _advice(self) -> str:
        """Whether a simple model suffices, and which one."""
        top, simple = _best(list(self.best.values())), self.simple
        known = simple is not None and (self._beats_guess(simple) or self._is_likelier(simple.predictions))
        if simple is None or not known or self._leads(top, simple):
            return f"No simple model is as good as {top}."
        if simple.score >= top.score:
            return f"A simple model is the best: {simple}."
        return f"A simple model is as good: {simple}; {top} is not clearly better."

    def _no_signal(self) -> Verdict:
        """That no model is better, or that not even one without errors would be; and candidates that were not tried."""
        given, task = self.given, task_of(self.given.task)
        right = task.indicators(given.targets, given.predictions.shape[3])[None]
        perfect = _Scored("", right, 1.0)
        rest = f"{self._guess_words} ({self._metric} {self.guess.score:.3f})."
        signal: Signal = "none" if self._beats_guess(perfect) or self._is_likelier(right) else "undecided"
        if signal == "none":
            words = f"No signal was found: no model is clearly better than {rest}"
            ahead = [model for model in self.best.values() if self._beats_guess(model, level=LEVEL)]
            if ahead:
                words += f" {_best(ahead)} is ahead, which may be chance: more labelled subgraphs would tell."
        else:
            number = f"{len(given.targets):,} labelled subgraphs"
            words = f"{number} are too few to tell whether any model is better than {rest}"
        if self.untried:
            subject = "1 candidate was" if len(self.untried) == 1 else f"{len(self.untried)} candidates were"
            words += f" {subject} not tried: {', '.join(self.untried)}."
        return Verdict((signal,), (words,))

    def _signal_words(self, views: Sequence[View], clear: Sequence[View]) -> str:
        guess, score = self._guess_words, f"{self.guess.score:.3f}"
        if not views:
            models = " and ".join(str(self.best[view]) for view in clear)
            what = f"The labels carry a signal ({models}; {guess} scores {score}, {self._metric})"
            return f"{what}, but its kind is unclear: no kind of model is clearly better than the simpler ones."
        named = [_DEPENDS_ON[_VIEWS[view]][min(i, 1)] for i, view in enumerate(views)]
        first, *others = (f"{words} ({self.best[view]})" for words, view in zip(named, views, strict=True))
        words = " and on ".join([", on ".join([first, *others[:-1]]), *others[-1:]])
        return f"The labels depend on {words}; {guess} scores {score} ({self._metric})."
