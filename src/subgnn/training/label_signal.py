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
                    is, than all simpler models; each simpler kind was tried
``beyond``          the same of a model that sees everything
``unplaced``        some model is clearly better than the guess, but none of these holds
``undecided``       no model is, and not even one without errors would be
``none``            no model is, but one without errors would be
==================  ================================================================================================

Models that see nodes see size, too: more nodes make a larger sum. So labels that shape explains as well are not
evidence of identity. Weights or directions of edges are named if the best model of a group is clearly better than those
of its method that use fewer of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from subgnn.data.graph import ATTRIBUTES
from subgnn.models.interface import View
from subgnn.task import metric_name, task_of
from subgnn.training.ensemble_selection import HEADLINE, OutOfFold, calibrate, chance_of_lead, chance_of_mean

Signal = Literal["identity", "shape", "surroundings", "beyond", "unplaced", "undecided", "none"]
LEVEL, MARGIN = 0.05, 0.02
_VIEWS: dict[View, Signal] = {"nodes": "identity", "shape": "shape"}
_VIEWS |= {"surroundings": "surroundings", "everything": "beyond"}
_SIMPLER: dict[View, tuple[View, ...]] = {"nodes": ("shape",), "shape": (), "surroundings": ("nodes", "shape")}
_SIMPLER |= {"everything": ("nodes", "shape", "surroundings")}
_DEPENDS_ON: dict[Signal, tuple[str, str]] = {
    "identity": ("which nodes a subgraph has", "which nodes it has"),
    "shape": ("the shape of a subgraph", "its shape"),
    "surroundings": ("the nodes around a subgraph", "the nodes around it"),
    "beyond": ("more than nodes, shape or surroundings alone", "more than each of these alone"),
}
"""What labels depend on, in words: at the beginning of a list, and later."""


@dataclass(frozen=True, slots=True)
class JudgedModel:
    """A judged model: what it sees of a subgraph, the edge attributes it uses, and whether it is fitted in one go."""

    name: str
    sees: View
    simple: bool = True
    method: str = ""
    uses: frozenset[str] = frozenset()

    def is_plainer(self, other: Self) -> bool:
        """Whether it is the other model with a part of what that uses."""
        return (self.sees, self.method) == (other.sees, other.method) and self.uses < other.uses


@dataclass(frozen=True, slots=True)
class Verdict:
    """The signals that labels carry, in words, too."""

    signals: tuple[Signal, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """A model with its predictions (repeats, n, outputs) and its score."""

    model: JudgedModel
    predictions: NDArray[np.float64]
    score: float

    def __str__(self) -> str:
        return f"{self.model.name} {self.score:.3f}"


def signal_of(models: Sequence[JudgedModel], given: OutOfFold, untried: Sequence[str] = ()) -> Verdict:
    """Which kind of signal the labels carry, by the models of ``given.predictions``; ``untried`` ones may find more.

    Example:
        >>> targets = np.arange(90) % 3
        >>> given = OutOfFold(np.eye(3)[targets][None, None], targets, "multi-class", np.arange(90))
        >>> print(*signal_of([JudgedModel("bag", "nodes")], given).sentences)
        The labels depend on which nodes a subgraph has (bag 1.000); always predicting the most frequent class ...
    """
    pairs = zip(models, given.predictions, strict=True)
    scored = [_Scored(model, one, given.score(one)) for model, one in pairs if model.sees in _VIEWS]
    groups = {view: [one for one in scored if one.model.sees == view] for view in _VIEWS}
    sizes = {view: len(group) for view, group in groups.items()}
    # Each is compared with the guess twice: by the metric, and by likelihood.
    tests = sum(size * (2 + sum(sizes[other] for other in _SIMPLER[view])) for view, size in sizes.items())
    simple = [one for one in scored if one.model.simple]
    tests += len(simple) * (len(scored) - len(simple))
    tests += sum(one.is_plainer(other) for one in models for other in models)
    # The guess is always the most frequent class, or the mean; for a ranking, equal scores of all subgraphs.
    task, shape = task_of(given.task), given.predictions.shape[2:]
    constant = np.broadcast_to(task.constant(given.targets), given.targets.shape)
    guess = task.indicators(constant, shape[1]) if given.metric == HEADLINE else np.zeros(shape)
    found = _Comparison(
        given=given,
        models=scored,
        best={view: _best(group) for view, group in groups.items() if group},
        simple=_best(simple) if simple else None,
        guess=_Scored(JudgedModel("", "nothing"), guess[None], given.score(guess[None])),
        level=LEVEL / max(1, tests),
    ).verdict()
    if not untried:
        return found
    subject = "1 candidate was" if len(untried) == 1 else f"{len(untried)} candidates were"
    return replace(found, sentences=(*found.sentences, f"{subject} not tried: {', '.join(untried)}."))


def _best(models: Sequence[_Scored]) -> _Scored:
    return max(models, key=lambda model: model.score)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The models, the best one of each group and the best simple model, compared at a significance ``level``."""

    given: OutOfFold
    models: Sequence[_Scored]
    best: dict[View, _Scored]
    simple: _Scored | None
    guess: _Scored
    level: float

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
        if len(self.models) > 1:
            words.append(self._advice())
        return Verdict(tuple(_VIEWS[view] for view in views) or ("unplaced",), tuple(words))

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
        simpler = _SIMPLER[view]
        rivals = [other for other in simpler if other in clear] or ([] if view == "nodes" else simpler)
        tried = view == "nodes" or self.best.keys() >= set(simpler)
        return tried and all(self._leads(self.best[view], self.best[other]) for other in rivals)

    def _advice(self) -> str:
        """Whether a simple model suffices, and which one."""
        top, simple = _best(list(self.best.values())), self.simple
        if simple is None:
            return "No simple model was tried."
        known = self._beats_guess(simple) or self._is_likelier(simple.predictions)
        if not known or self._leads(top, simple):
            return f"No simple model is as good as {top}."
        if simple.score >= top.score:
            return f"A simple model is the best: {simple}."
        return f"A simple model is as good: {simple}; {top} is not clearly better."

    def _no_signal(self) -> Verdict:
        """That no model is better, or that not even one without errors would be."""
        given, task = self.given, task_of(self.given.task)
        right = task.indicators(given.targets, given.predictions.shape[3])[None]
        perfect = _Scored(JudgedModel("", "nothing"), right, 1.0)
        rest = f"{self._guess_words} ({self._metric} {self.guess.score:.3f})."
        signal: Signal = "none" if self._beats_guess(perfect) or self._is_likelier(right) else "undecided"
        if signal == "none":
            words = f"No signal was found: no model is clearly better than {rest}"
            ahead = [model for model in self.best.values() if self._beats_guess(model, level=LEVEL)]
            if ahead:
                words += f" {_best(ahead)} is ahead, which may be chance: more labelled subgraphs would tell if it is."
        else:
            number = f"{len(given.targets):,} labelled subgraphs"
            words = f"{number} are too few to tell whether any model is better than {rest}"
        return Verdict((signal,), (words,))

    def _signal_words(self, views: Sequence[View], clear: Sequence[View]) -> str:
        guess, score = self._guess_words, f"{self.guess.score:.3f}"
        lacking = [one for one in _VIEWS if one not in self.best and any(one in _SIMPLER[view] for view in clear)]
        not_tried = f"no model of {' or '.join(lacking)} alone was tried"
        if not views:
            models = " and ".join(str(self.best[view]) for view in clear)
            what = f"The labels carry a signal ({models}; {guess} scores {score}, {self._metric})"
            why = not_tried if lacking else "no kind of model is clearly better than the simpler ones"
            return f"{what}, but its kind is unclear: {why}."
        first, *others = (self._dependence(view, min(i, 1)) for i, view in enumerate(views))
        words = " and on ".join([", on ".join([first, *others[:-1]]), *others[-1:]])
        end = f"; {not_tried}." if lacking else "."
        return f"The labels depend on {words}; {guess} scores {score} ({self._metric}){end}"

    def _dependence(self, view: View, place: int) -> str:
        """What labels depend on, with what the best model uses of edges if this makes it clearly better."""
        words, best = _DEPENDS_ON[_VIEWS[view]][place], self.best[view]
        plain = [one for one in self.models if one.model.is_plainer(best.model)]
        if not plain or not self._leads(best, other := _best(plain)):
            return f"{words} ({best})"
        used = (f" and the {ATTRIBUTES[name]}" for name in sorted(best.model.uses - other.model.uses))
        return f"{words}{''.join(used)} ({best}; without, {other})"
