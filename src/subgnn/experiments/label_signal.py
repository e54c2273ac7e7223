"""Determine which kind of signal labels carry, from the validation scores of four models.

A model is *clearly* better than another if

1. its validation score (micro-F1, for real values R^2) is higher by at least :data:`MARGIN`, and
2. the paired swap test (:func:`~subgnn.models.significance.swap_test`) gives less than :data:`LEVEL` / looks.

Looks is how many fitted states the validation split chose from, epochs and candidates together: the best of many is
high by luck alone, and dividing by their number (Bonferroni) corrects for that, conservatively. The test split is not
used.

====================  ==============================================================================================
signal                condition
====================  ==============================================================================================
``identity``          ``bag`` or ``avg`` is clearly better than the constant prediction, and than ``topology`` if that
                      is, too
``shape``             ``topology`` is clearly better than the constant prediction
``beyond``            SubGNN is, and clearly better than those simple models that are; if none is, than all of them
``unplaced``          SubGNN alone is, but it is not clearly better than each simple model, or none has a result
``undecided``         no model is, but some model would be if a single look had chosen it; or not even a model without
                      errors would be, as the validation split is too small
``none``              no model is, and neither of these holds
====================  ==============================================================================================

``bag`` and ``avg`` see size, too: more nodes make a larger sum, and a mean of random vectors that is shorter. So labels
that ``topology`` explains as well are not evidence of identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from subgnn.models.significance import ScoreTerms, lead_interval, swap_test

Signal = Literal["identity", "shape", "beyond", "unplaced", "none", "undecided"]
LEVEL, MARGIN = 0.05, 0.02
BAGS = ("bag", "avg")
SIMPLE = (*BAGS, "topology")
NETWORK = "subgnn"


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted model on the validation split, and how many looks at that split chose it."""

    terms: ScoreTerms
    looks: int


@dataclass(frozen=True, slots=True)
class Lead:
    """The lead of a model over another.

    Attributes:
        low, high: its 95 % interval.
        chance: the p-value of the swap test.
        below: the level that the p-value must be below.
        clear: whether the model is clearly better.
    """

    lead: float
    low: float
    high: float
    chance: float
    below: float
    clear: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The signals of the labels.

    Attributes:
        enough: the simplest recipe that is enough; empty if none is clearly better than the constant prediction.
        words: the verdict in sentences.
    """

    signals: tuple[Signal, ...]
    enough: str
    over_constant: dict[str, Lead]
    over_topology: dict[str, Lead]
    network_over: dict[str, Lead]
    words: tuple[str, ...]


def compare(model: Model, other: ScoreTerms) -> Lead:
    """Whether a model is clearly better than another."""
    lead, below = model.terms.score - other.score, LEVEL / max(1, model.looks)
    chance = swap_test(model.terms, other)
    low, high = lead_interval(model.terms, other)
    return Lead(lead, low, high, chance, below, lead >= MARGIN and chance < below)


def judge(
    models: Mapping[str, Model], *, constant: ScoreTerms, perfect: ScoreTerms, metric: str = "micro-F1"
) -> Verdict:
    """Apply the rule of this module.

    Args:
        models: those of ``topology``, ``bag``, ``avg`` and ``subgnn`` that were fitted.
        constant: of the prediction that ignores the subgraph.
        perfect: of predictions without errors.
        metric: the name of the score in the sentences.
    """

    def over(names: Iterable[str], other: str) -> dict[str, Lead]:
        return {name: compare(models[name], models[other].terms) for name in names if name in models}

    over_constant = {name: compare(model, constant) for name, model in models.items()}
    over_topology = over(BAGS, "topology") if "topology" in models else {}
    network_over: dict[str, Lead] = {}
    if NETWORK in models:
        network_over = {name: compare(models[NETWORK], models[name].terms) for name in models if name in SIMPLE}
    clear = [name for name, lead in over_constant.items() if lead.clear]
    simple = sorted((name for name in clear if name in SIMPLE), key=lambda name: -models[name].terms.score)
    signals: list[Signal] = []
    if any(name in simple and ("topology" not in simple or over_topology[name].clear) for name in BAGS):
        signals.append("identity")
    if "topology" in simple:
        signals.append("shape")
    beaten = {name for name, lead in network_over.items() if NETWORK in clear and lead.clear}
    rivals = [name for name in simple or network_over if name not in beaten]
    enough = rivals[0] if simple and rivals else NETWORK if NETWORK in clear else ""
    # Leads that would be clear if a single look at validation had chosen the model.
    hints = [name for name, lead in over_constant.items() if lead.lead >= MARGIN and lead.chance < LEVEL]
    if NETWORK in clear and network_over and not rivals:
        signals.append("beyond")
    elif NETWORK in clear and not simple:
        signals.append("unplaced")
    elif not signals:
        looks = min((model.looks for model in models.values()), default=1)
        small = not compare(Model(perfect, looks), constant).clear
        signals.append("undecided" if small or hints else "none")
    scores = {name: f"{name} {model.terms.score:.3f}" for name, model in models.items()}
    bags = [scores[name] for name in BAGS if name in clear]
    words = (
        *_signal_words(signals, scores, bags, f"{constant.score:.3f} of the constant prediction"),
        *_no_signal_words(signals, [scores[name] for name in hints], constant, metric),
        _advice(signals, models, enough),
    )
    return Verdict(tuple(signals), enough, over_constant, over_topology, network_over, words)


def _signal_words(signals: list[Signal], scores: Mapping[str, str], bags: list[str], guess: str) -> list[str]:
    """Sentences about the signals that were found; ``bags`` are the scores of the bags that are clearly better."""
    words = []
    if "identity" in signals:
        known = " and ".join(scores[name] for name in BAGS if name in scores)
        words.append(f"The labels follow node identity: which nodes a subgraph has ({known}, beside {guess}).")
    if "shape" in signals:
        known = f"{scores['topology']}, beside {guess}"
        words.append(f"The labels follow shape: size, density, components, border ({known}).")
        if bags and "identity" not in signals:
            be, see = ("is", "sees") if len(bags) == 1 else ("are", "see")
            words.append(
                f"{' and '.join(bags)} {be} not clearly better than topology, and {see} size, too: whether node "
                "identity matters beside shape cannot be determined."
            )
    network = scores.get(NETWORK, "").removeprefix(f"{NETWORK} ")
    if "beyond" in signals:
        words.append(
            f"SubGNN ({network}) is clearly better than the simple models: position, neighbourhood, or several "
            "signals together matter."
        )
    if "unplaced" in signals:
        others = any(name in SIMPLE for name in scores)
        why = "but is not clearly better than each simple model" if others else "and no simple model has a result"
        words.append(
            f"SubGNN ({network}, beside {guess}) finds a signal, {why}: which kind it is cannot be determined."
        )
    return words


def _no_signal_words(signals: list[Signal], hints: list[str], constant: ScoreTerms, metric: str) -> list[str]:
    guess, size = f"{constant.score:.3f} of the constant prediction", len(constant.gain)
    if "none" in signals:
        return [f"No signal was found: no model is clearly above the {guess} (validation {metric})."]
    if "undecided" in signals and hints:
        return [
            f"Nothing is clear: {', '.join(hints)}, beside {guess}, may be no more than the best of many looks at "
            f"{size} validation subgraphs."
        ]
    if "undecided" in signals:
        return [
            f"There is no verdict: with {size} validation subgraphs, not even a model without errors would be clearly "
            f"above the {guess}."
        ]
    return []


def _advice(signals: list[Signal], models: Mapping[str, Model], enough: str) -> str:
    if "undecided" in signals:
        return "Add subgraphs, or give validation a larger part of them."
    if "none" in signals:
        return "Check the labels, add subgraphs, or train longer before you try more."
    if "unplaced" in signals:
        return "Add subgraphs or train longer to find out; until then, use SubGNN."
    if enough == NETWORK:
        return "A simple model is not enough: use SubGNN."
    if NETWORK not in models:
        return f"Whether {enough}, a simple model, is enough cannot be determined, as SubGNN has no result."
    return f"A simple model is enough so far: SubGNN is not clearly better than {enough} after this short training."
