"""Determine which kind of signal labels carry, from out-of-fold predictions of models that see different things.

Models are grouped by what they see of a subgraph (:meth:`~subgnn.models.interface.Model.sees`): its nodes, its shape,
its nodes with those around them, or everything. The best of each group is compared with the constant prediction (always
the most frequent class; for real values, the mean) and with the best of simpler groups. A model is *clearly* better if

1. its score (micro-F1, for real values R^2) is higher by at least :data:`MARGIN`, and
2. the paired swap test (:func:`~subgnn.metrics.significance.swap_test`) gives less than :data:`LEVEL` / comparisons.

Comparisons is the number of pairs of models that could have been compared: the best of several is high by luck alone,
and dividing by their number (Bonferroni) corrects for that, conservatively.

==================  ================================================================================================
signal              condition
==================  ================================================================================================
``shape``           a model that sees shape is clearly better than the constant prediction
``identity``        a model that sees nodes is, and clearly better than shape where that is a signal, too
``surroundings``    a model that sees surroundings is, and clearly better than all simpler models that are; if none
                    is, than all simpler models
``beyond``          the same of a model that sees everything
``unplaced``        some model is clearly better than the constant prediction, but none of these holds
``undecided``       no model is, but one would be if it were the only one; or not even predictions without errors
                    would be, as there are too few subgraphs
``none``            no model is, and neither of these holds
==================  ================================================================================================

Models that see nodes see size, too: more nodes make a larger sum. So labels that shape explains as well are not
evidence of identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.metrics.significance import ScoreTerms, score_terms, swap_test
from subgnn.models.interface import View
from subgnn.task import TaskName, task_of

Signal = Literal["identity", "shape", "surroundings", "beyond", "unplaced", "undecided", "none"]
LEVEL, MARGIN = 0.05, 0.02
_VIEWS: dict[View, Signal] = {
    "nodes": "identity",
    "shape": "shape",
    "surroundings": "surroundings",
    "everything": "beyond",
}
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


@dataclass(frozen=True, slots=True, eq=False)
class CandidateScore:
    """The out-of-fold score of a model, and which aspects of a subgraph the model uses.

    ``simple`` models are fitted in one go.
    """

    name: str
    sees: View
    terms: ScoreTerms
    simple: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """The signals that the labels carry, also in words.

    ``enough`` is the best simple model if no model is clearly better, else the best model; empty without a signal.
    """

    signals: tuple[Signal, ...]
    enough: str
    sentences: tuple[str, ...]


def signal_of(
    models: Sequence[CandidateScore],
    targets: NDArray[Any],
    task: TaskName,
    units: NDArray[np.int64],
    untried: Sequence[str] = (),
) -> Verdict:
    """Which kind of signal the labels carry, by the rule of this module.

    Args:
        models: the fitted models. If none of them sees nothing, the constant prediction is computed from all targets.
        units: (n,), equal for subgraphs that count as one.
        untried: names of candidates that were not judged, which may find what the others missed.

    Example:
        >>> targets = np.arange(90) % 3
        >>> bag = CandidateScore("bag", "nodes", score_terms(targets, targets, "multi-class"))
        >>> print(*signal_of([bag], targets, "multi-class", np.arange(90)).sentences)
        The labels depend on which nodes a subgraph has (bag 1.000); always predicting the most frequent class ...
    """
    guess = np.broadcast_to(task_of(task).constant(targets), targets.shape)
    constant = CandidateScore("constant", "nothing", score_terms(guess, targets, task))
    perfect = score_terms(targets, targets, task)
    known = models if any(model.sees == "nothing" for model in models) else [constant, *models]
    known = [replace(model, terms=model.terms.joined(units)) for model in known]
    groups = {view: [model for model in known if model.sees == view] for view in ("nothing", *_VIEWS)}
    sizes = {view: len(groups[view]) for view in _VIEWS}
    pairs = sum(size * (1 + sum(sizes[other] for other in _SIMPLER[view])) for view, size in sizes.items())
    simple = [model for model in known if model.simple and model.sees != "nothing"]
    pairs += len(simple) * (len(known) - len(groups["nothing"]) - len(simple))
    comparison = _Comparison(
        best={view: _best(groups[view]) for view in _VIEWS if groups[view]},
        simple=_best(simple) if simple else None,
        constant=_best(groups["nothing"]).terms,
        perfect=perfect.joined(units),
        level=LEVEL / max(1, pairs),
        metric=task_of(task).headline_word,
        guess=task_of(task).constant_word,
        size=len(targets),
        untried=untried,
    )
    return comparison.verdict()


def _best(models: Sequence[CandidateScore]) -> CandidateScore:
    return max(models, key=lambda model: model.terms.score)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The best model of each group and the best simple model, compared at a significance ``level``."""

    best: Mapping[View, CandidateScore]
    simple: CandidateScore | None
    constant: ScoreTerms
    perfect: ScoreTerms
    level: float
    metric: str
    guess: str
    size: int
    untried: Sequence[str]

    def verdict(self) -> Verdict:
        clear = [view for view, model in self.best.items() if self._leads(model.terms, self.constant)]
        signals: list[Signal] = [_VIEWS[view] for view in clear if self._is_signal(view, clear)]
        if not signals:
            hints = any(self._leads(model.terms, self.constant, level=LEVEL) for model in self.best.values())
            decided = not hints and self._leads(self.perfect, self.constant)
            signals = ["unplaced" if clear else "none" if decided else "undecided"]
        words = self._signal_words(signals, clear)
        if not clear:
            return Verdict(tuple(signals), "", (words,))
        enough, advice = self._enough()
        return Verdict(tuple(signals), enough.name, (words, advice))

    def _leads(self, ours: ScoreTerms, theirs: ScoreTerms, *, level: float | None = None) -> bool:
        return ours.score - theirs.score >= MARGIN and swap_test(ours, theirs) < (level or self.level)

    def _is_signal(self, view: View, clear: Sequence[View]) -> bool:
        """Whether a group that is clearly better than the constant prediction is also better than simpler ones."""
        rivals = [other for other in _SIMPLER[view] if other in clear]
        if not rivals and view != "nodes":
            rivals = [other for other in _SIMPLER[view] if other in self.best]
        placed = bool(rivals) or view in ("nodes", "shape")
        return placed and all(self._leads(self.best[view].terms, self.best[other].terms) for other in rivals)

    def _enough(self) -> tuple[CandidateScore, str]:
        """The model that suffices, and a sentence on whether it is a simple one."""
        top, simple = _best(list(self.best.values())), self.simple
        known = simple is not None and self._leads(simple.terms, self.constant)
        if simple is None or not known or self._leads(top.terms, simple.terms):
            return top, f"No simple model is as good as {_score(top)}."
        if simple.terms.score >= top.terms.score:
            return simple, f"A simple model is the best: {_score(simple)}."
        return simple, f"A simple model is as good: {_score(simple)}; {_score(top)} is not clearly better."

    def _signal_words(self, signals: Sequence[Signal], clear: Sequence[View]) -> str:
        guess, score = f"always predicting the {self.guess}", f"{self.constant.score:.3f}"
        if "none" in signals:
            what = f"No signal was found: no model is clearly better than {guess} ({self.metric} {score})."
            return f"{what}{self._untried()}"
        if "undecided" in signals:
            what = f"{self.size:,} labelled subgraphs are too few to tell whether any model is better than"
            return f"{what} {guess} ({self.metric} {score}).{self._untried()}"
        if "unplaced" in signals:
            models = " and ".join(_score(self.best[view]) for view in clear)
            what = f"The labels carry a signal ({models}; {guess} scores {score}, {self.metric})"
            return f"{what}, but its kind is unclear: no kind of model is clearly better than the simpler ones."
        views = [view for view in clear if _VIEWS[view] in signals]
        named = [_DEPENDS_ON[_VIEWS[view]][min(i, 1)] for i, view in enumerate(views)]
        first, *others = (f"{words} ({_score(self.best[view])})" for words, view in zip(named, views, strict=True))
        words = " and on ".join([", on ".join([first, *others[:-1]]), *others[-1:]])
        return f"The labels depend on {words}; {guess} scores {score} ({self.metric})."

    def _untried(self) -> str:
        if not self.untried:
            return ""
        subject = "1 candidate was" if len(self.untried) == 1 else f"{len(self.untried)} candidates were"
        return f" {subject} not tried: {', '.join(self.untried)}."


def _score(model: CandidateScore) -> str:
    return f"{model.name} {model.terms.score:.3f}"
