"""Which kind of signal labels carry, from how four models do on the validation split.

The rule. A model is *clearly* better than another where

1. its validation score (micro-F1, for real values R^2) is higher by at least :data:`MARGIN`, and
2. the paired swap test (:func:`~subgnn.experiments.paired.swap_test`) gives less than :data:`LEVEL` / looks.

Looks is how often the validation split was looked at to choose the model, epochs and candidates together: the best of
many looks is high by luck alone, and dividing by their number (Bonferroni) makes up for that, more than it has to.
The test split has no part in it.

====================  ==============================================================================================
signal                where
====================  ==============================================================================================
``identity``          ``bag`` or ``avg`` is clearly better than the constant answer, and than ``topology`` where that is
``shape``             ``topology`` is clearly better than the constant answer
``beyond``            SubGNN is, and clearly better than those simple models that are; where none is, than all of them
``unplaced``          SubGNN alone is, but it is not clearly better than each simple model, or none has a result
``undecided``         nothing is, but some model would be had it been chosen by one look; or not even a model without an
                      error would be, as the validation split is too small
``none``              nothing is, and neither holds
====================  ==============================================================================================

``bag`` and ``avg`` see size, too: more nodes make a larger sum, and a mean of random vectors that is shorter. So labels
that ``topology`` explains as well are no sign of identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from subgnn.experiments.paired import Pieces, lead_interval, swap_test

Signal = Literal["identity", "shape", "beyond", "unplaced", "none", "undecided"]
LEVEL, MARGIN = 0.05, 0.02
SIMPLE: dict[str, Signal] = {"bag": "identity", "avg": "identity", "topology": "shape"}
NETWORK = "default"


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted model on the validation split, and how many looks at that split chose it."""

    pieces: Pieces
    looks: int


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a model is ahead: the lead, its 95 % interval, the swap test, what it has to be below, and the answer."""

    lead: float
    low: float
    high: float
    chance: float
    below: float
    clear: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the labels carry, which recipe to go on with (empty where none is better than nothing), leads, and words."""

    signals: tuple[Signal, ...]
    enough: str
    over_constant: dict[str, Lead]
    over_topology: dict[str, Lead]
    network_over: dict[str, Lead]
    words: tuple[str, ...]


def compare(model: Model, other: Pieces) -> Lead:
    """Whether a model is clearly better than another."""
    lead, below = model.pieces.score - other.score, LEVEL / max(1, model.looks)
    chance = swap_test(model.pieces, other)
    low, high = lead_interval(model.pieces, other)
    return Lead(lead, low, high, chance, below, lead >= MARGIN and chance < below)


def judge(models: Mapping[str, Model], *, constant: Pieces, perfect: Pieces, metric: str = "micro-F1") -> Verdict:
    """Apply the rule of this module.

    Args:
        models: those of ``topology``, ``bag``, ``avg`` and ``default`` (SubGNN) that were fitted.
        constant: of the answer that looks at nothing.
        perfect: of a model that makes no error.
        metric: what the words call the score.
    """
    over_constant = {name: compare(model, constant) for name, model in models.items()}
    clear = [name for name, lead in over_constant.items() if lead.clear]
    simple = sorted((name for name in clear if name in SIMPLE), key=lambda name: -models[name].pieces.score)
    network_over: dict[str, Lead] = {}
    if NETWORK in models:
        network_over = {name: compare(models[NETWORK], models[name].pieces) for name in models if name in SIMPLE}
    hints = [name for name, lead in over_constant.items() if _hint(lead)]
    over_topology: dict[str, Lead] = {}
    if "topology" in models:
        known = (name for name in ("bag", "avg") if name in models)
        over_topology = {name: compare(models[name], models["topology"].pieces) for name in known}
    signals: list[Signal] = []
    if any(name in simple and ("topology" not in simple or over_topology[name].clear) for name in ("bag", "avg")):
        signals.append("identity")
    if "topology" in simple:
        signals.append("shape")
    beaten = {name for name, lead in network_over.items() if NETWORK in clear and lead.clear}
    rivals = [name for name in simple or network_over if name not in beaten]
    enough = rivals[0] if simple and rivals else NETWORK if NETWORK in clear else ""
    if NETWORK in clear and network_over and not rivals:
        signals.append("beyond")
    elif NETWORK in clear and not simple:
        signals.append("unplaced")
    elif not signals:
        looks = min((model.looks for model in models.values()), default=1)
        small = not compare(Model(perfect, looks), constant).clear
        signals.append("undecided" if small or hints else "none")
    words = _words(signals, models, clear=clear, enough=enough, constant=constant, hints=hints, metric=metric)
    return Verdict(tuple(signals), enough, over_constant, over_topology, network_over, words)


def _hint(lead: Lead) -> bool:
    """Whether a lead would be clear if one look at validation had chosen the model."""
    return lead.lead >= MARGIN and lead.chance < LEVEL


def _words(
    signals: list[Signal],
    models: Mapping[str, Model],
    *,
    clear: Sequence[str],
    enough: str,
    constant: Pieces,
    hints: Sequence[str],
    metric: str,
) -> tuple[str, ...]:
    scores = {name: f"{model.pieces.score:.3f}" for name, model in models.items()}
    guess = f"{constant.score:.3f} of the constant answer"
    said = []
    if "identity" in signals:
        known = " and ".join(f"{name} {scores[name]}" for name in ("bag", "avg") if name in models)
        said.append(f"The labels follow node identity: which nodes a subgraph has ({known}, beside {guess}).")
    if "shape" in signals:
        known = f"topology {scores['topology']}, beside {guess}"
        said.append(f"The labels follow shape: size, density, components, border ({known}).")
        also = [f"{name} {scores[name]}" for name in ("bag", "avg") if name in clear]
        if also and "identity" not in signals:
            be, see = ("is", "sees") if len(also) == 1 else ("are", "see")
            said.append(
                f"{' and '.join(also)} {be} not clearly better than topology, and {see} size, too: whether node "
                "identity matters beside shape cannot be said."
            )
    if "beyond" in signals:
        said.append(
            f"SubGNN ({scores[NETWORK]}) is clearly better than the simple models: position, neighbourhood, or several "
            "signals together matter."
        )
    if "unplaced" in signals:
        others = any(name in SIMPLE for name in models)
        why = "but is not clearly better than each simple model" if others else "and no simple model has a result"
        said.append(
            f"SubGNN ({scores[NETWORK]}, beside {guess}) finds a signal, {why}: what kind it is cannot be said."
        )
    if "none" in signals:
        said.append(f"No signal was found: no model is clearly above the {guess} (validation {metric}).")
    if "undecided" in signals and hints:
        known = ", ".join(f"{name} {scores[name]}" for name in hints)
        said.append(
            f"Nothing is clear: {known}, beside {guess}, may be no more than the best of many looks at "
            f"{len(constant.gain)} validation subgraphs."
        )
    elif "undecided" in signals:
        said.append(
            f"Nothing can be said: with {len(constant.gain)} validation subgraphs, not even a model without an error "
            f"would be clearly above the {guess}."
        )
    return (*said, _advice(signals, models, enough))


def _advice(signals: list[Signal], models: Mapping[str, Model], enough: str) -> str:
    if "undecided" in signals:
        return "Add subgraphs, or give validation a larger part of them."
    if "none" in signals:
        return "Check the labels, add subgraphs, or train longer before more is tried."
    if "unplaced" in signals:
        return "Add subgraphs or train longer to tell; until then, go on with SubGNN."
    if enough == NETWORK:
        return "A simple model is not enough: go on with SubGNN."
    if NETWORK not in models:
        return f"Whether {enough}, a simple model, is enough cannot be said, as SubGNN has no result."
    return f"A simple model is enough so far: SubGNN is not clearly better than {enough} after this short training."
