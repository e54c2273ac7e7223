"""Determine which kind of signal labels carry, from out-of-fold predictions of models that see different things.

Models are grouped by what they see of a subgraph (:meth:`~subgnn.models.interface.Model.sees`): its nodes, its shape,
its nodes with those around them, or everything. Of each group, the best is compared with the constant prediction and
with the best of simpler groups. A model is *clearly* better than another if

1. its score (micro-F1, for real values R^2) is higher by at least :data:`MARGIN`, and
2. the paired swap test (:func:`~subgnn.models.significance.swap_test`) gives less than :data:`LEVEL` / comparisons.

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
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from subgnn.data.subgraphs import Task
from subgnn.models.interface import View
from subgnn.models.reference_scores import constant_prediction
from subgnn.models.significance import ScoreTerms, score_terms, swap_test

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
_DEPENDS_ON: dict[Signal, str] = {
    "identity": "which nodes {it} has",
    "shape": "the shape of {it}",
    "surroundings": "the nodes around {it}",
    "beyond": "more of {it} than a simple model sees",
}


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A model by what it sees of a subgraph, and the score terms of its out-of-fold predictions."""

    name: str
    sees: View
    terms: ScoreTerms


@dataclass(frozen=True, slots=True)
class Verdict:
    """The signals of the labels.

    Attributes:
        enough: the best model of the simplest group than which no model is clearly better; empty without a signal.
        sentences: the signals, and whether a simple model is as good, in words.
    """

    signals: tuple[Signal, ...]
    enough: str
    sentences: tuple[str, ...]


def signal_of(models: Sequence[Judged], targets: NDArray[Any], task: Task, units: NDArray[np.int64]) -> Verdict:
    """Which kind of signal the labels carry, by the rule of this module.

    Args:
        models: the fitted ones. Without one that sees nothing, the constant prediction is that of all targets.
        units: equal for subgraphs that count as one, as their nodes are equal or they are of one group.

    Shapes:
        targets: (n,) or (n, classes). units: (n,), from 0.

    Example:
        >>> targets = np.arange(90) % 3
        >>> bag = Judged("bag", "nodes", score_terms(targets, targets, "multi-class"))
        >>> print(*signal_of([bag], targets, "multi-class", np.arange(90)).sentences)
        The labels depend on which nodes a subgraph has (bag 1.000); the constant prediction has micro-F1 0.333. ...
    """
    guess = np.broadcast_to(constant_prediction(targets, task), targets.shape)
    constant = Judged("constant", "nothing", score_terms(guess, targets, task))
    perfect = score_terms(targets, targets, task)
    groups: dict[View, list[tuple[str, ScoreTerms]]] = {}
    for model in models if any(model.sees == "nothing" for model in models) else [constant, *models]:
        groups.setdefault(model.sees, []).append((model.name, model.terms.joined(units)))
    best = {view: max(group, key=lambda pair: pair[1].score) for view, group in groups.items()}
    sizes = {view: len(groups.get(view, ())) for view in _VIEWS}
    pairs = sum(size * (1 + sum(sizes[other] for other in _SIMPLER[view])) for view, size in sizes.items())
    judge = _Judge(
        best={view: best[view] for view in _VIEWS if view in best},
        constant=best["nothing"][1],
        perfect=perfect.joined(units),
        level=LEVEL / max(1, pairs),
        metric="R2" if task == "regression" else "micro-F1",
        size=len(targets),
    )
    return judge.verdict()


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """The best model of each group, and the level of their comparisons.

    Attributes:
        best: name and terms of the best model of each group, by score.
        level: that the p-value of a clear lead is below.
    """

    best: Mapping[View, tuple[str, ScoreTerms]]
    constant: ScoreTerms
    perfect: ScoreTerms
    level: float
    metric: str
    size: int

    def verdict(self) -> Verdict:
        """Apply the rule."""
        clear = [view for view, (_, terms) in self.best.items() if self._leads(terms, self.constant)]
        signals: list[Signal] = [_VIEWS[view] for view in clear if self._is_signal(view, clear)]
        if not signals:
            hints = [n for n, terms in self.best.values() if self._leads(terms, self.constant, level=LEVEL)]
            decided = not hints and self._leads(self.perfect, self.constant)
            signals = ["unplaced" if clear else "none" if decided else "undecided"]
        enough = self._enough(clear)
        sentences = [self._signal_words(signals, clear), *([self._enough_words(enough)] if enough else [])]
        return Verdict(tuple(signals), self.best[enough][0] if enough else "", tuple(sentences))

    def _leads(self, ours: ScoreTerms, theirs: ScoreTerms, *, level: float | None = None) -> bool:
        """Whether a model is clearly better than another."""
        return ours.score - theirs.score >= MARGIN and swap_test(ours, theirs) < (level or self.level)

    def _is_signal(self, view: View, clear: Sequence[View]) -> bool:
        """Whether a group that is clearly better than the constant prediction is also better than simpler ones."""
        rivals = [other for other in _SIMPLER[view] if other in clear]
        if not rivals and view != "nodes":
            rivals = [other for other in _SIMPLER[view] if other in self.best]
        placed = bool(rivals) or view in ("nodes", "shape")
        return placed and all(self._leads(self.best[view][1], self.best[other][1]) for other in rivals)

    def _enough(self, clear: Sequence[View]) -> View | None:
        """The simplest group than which none is clearly better; of nodes and shape, the better one comes first."""
        for view in sorted(clear, key=lambda v: (len(_SIMPLER[v]) > 1, len(_SIMPLER[v]) > 2, -self.best[v][1].score)):
            ours = self.best[view][1]
            if not any(self._leads(theirs, ours) for other, (_, theirs) in self.best.items() if other != view):
                return view
        return None

    def _score(self, view: View) -> str:
        name, terms = self.best[view]
        return f"{name} {terms.score:.3f}"

    def _signal_words(self, signals: Sequence[Signal], clear: Sequence[View]) -> str:
        guess = f"{self.metric} {self.constant.score:.3f}"
        if "none" in signals:
            return f"No signal was found: no model is clearly better than the constant prediction ({guess})."
        if "undecided" in signals:
            what = f"{self.size:,} labelled subgraphs are too few to tell whether any model is better than"
            return f"{what} the constant prediction ({guess})."
        if "unplaced" in signals:
            models = " and ".join(self._score(view) for view in clear)
            what = f"The labels carry a signal ({models}; the constant prediction has {guess})"
            return f"{what}, but which kind cannot be told: no kind of model is clearly better than the simpler ones."
        views = [view for view in clear if _VIEWS[view] in signals]
        parts = [f"{_DEPENDS_ON[_VIEWS[view]]} ({self._score(view)})" for view in views]
        first, *others = (part.format(it="it" if i else "a subgraph") for i, part in enumerate(parts))
        words = " and on ".join([", on ".join([first, *others[:-1]]), *others[-1:]])
        return f"The labels depend on {words}; the constant prediction has {guess}."

    def _enough_words(self, enough: View) -> str:
        best = max(self.best, key=lambda view: self.best[view][1].score)
        if best != "everything":
            return f"A simple model is the best: {self._score(best)}."
        if enough != "everything":
            return f"A simple model is as good: {self._score(enough)}; {self._score(best)} is not clearly better."
        return f"No simple model is as good as {self.best[enough][0]}."
