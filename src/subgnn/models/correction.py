"""A network that corrects a baseline (``model.baseline``): b(S) plus what the network adds; beyond the paper.

b(S), the scores of the baseline, is the log-probability of each class; for multi-label, the log-odds of each label; for
regression, the standardised value. Of K classes, or of a label and its absence (K = 2), probabilities are first drawn a
little together, so that a network can overrule a baseline that was certain:

    p' = (1 - 0.02) p + 0.02 / K

This keeps the order of all probabilities of a class, and with it predictions and AUROC.

The network learns what the baseline leaves over. On the subgraphs a baseline was fitted to it leaves over too little:
there it is right more often than it will be elsewhere. So the training split is dealt into five folds, as subgraphs
were dealt to training and validation (equal nodes together, and whole groups), and the scores of each fold come from a
baseline that was fitted to the other four. All other subgraphs have the scores of the baseline fitted to the whole
training split. Choices that the baseline leaves open are made once, on the validation split, by the fit to the whole
training split, and kept for the folds.

In prediction all subgraphs, those of the training split too, have the scores of the baseline fitted to the whole
training split, so that an output is a function of a subgraph's nodes and the run alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special

from subgnn.channels.topology import Standard
from subgnn.config.settings import Recipe
from subgnn.data.graph import Graph
from subgnn.data.splits import draw_folds, whole_groups
from subgnn.data.subgraphs import SPLITS, Task
from subgnn.errors import DataError
from subgnn.models.examples import Examples, evaluate, outputs_of, validation_score
from subgnn.models.interface import (
    Candidate,
    FittedModel,
    Model,
    Opening,
    Scores,
    Settings,
    SetUp,
    Solvable,
    TrainingData,
)
from subgnn.models.spec import Checkpoint, ModelSpec, Weights

FOLDS = 5
_BATCH = 256
_SHARED_OUT = 0.02


class Correction(Model):
    """A model built of two: a network, and the baseline whose scores it corrects.

    Args:
        network: takes scores of a baseline.
        baseline: is fitted in one go.
    """

    def __init__(self, network: Model, baseline: Model) -> None:
        self.network, self.baseline = network, baseline
        self.needs_edges = network.needs_edges or baseline.needs_edges
        self.predicts_new_subgraphs = network.predicts_new_subgraphs and baseline.predicts_new_subgraphs
        self.uses_many_devices, self.has_channels = network.uses_many_devices, network.has_channels
        self.has_ensembles, self.corrects_baselines = network.has_ensembles, network.corrects_baselines

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        """Fit the baseline, and set up the network with its scores."""
        checkpoint, scores = fit_baseline(self.baseline, data, recipe)
        found = self.network.set_up(replace(data, scores=scores), recipe)
        candidates = [replace(c, checkpoint=replace(c.checkpoint, baseline=checkpoint)) for c in found.candidates]
        return SetUp(candidates, found.sources)

    def open(self, checkpoint: Checkpoint, graph: Graph, opening: Opening) -> FittedModel:
        """The network, with the scores of the baseline."""
        scores = open_scores(self.baseline, cast(Checkpoint, checkpoint.baseline), graph)
        return self.network.open(checkpoint, graph, replace(opening, scores=scores))

    def stored_weights(self, state: Weights) -> Weights:
        """Those of the network."""
        return self.network.stored_weights(state)

    def expected_weights(self, checkpoint: Checkpoint, graph: Graph) -> Weights:
        """Those of the network; the baseline has a checkpoint of its own."""
        return self.network.expected_weights(checkpoint, graph)

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        """Those of the network."""
        return self.network.problems(checkpoint, graph)

    def standards(self, spec: ModelSpec, graph: Graph) -> dict[str, int]:
        """Those of the network."""
        return self.network.standards(spec, graph)

    def uses_embeddings(self, settings: Settings) -> bool:
        """Whether the network does."""
        return self.network.uses_embeddings(settings)

    def check(self, recipe: Recipe, graph: Graph) -> None:
        """Check the network's settings, and that the baseline is fitted in one go."""
        self.network.check(recipe, graph)
        self.baseline.check_as_baseline(recipe)

    def check_inputs(self, recipe: Recipe) -> None:
        """Those of the network."""
        self.network.check_inputs(recipe)

    def num_fits(self, recipe: Recipe) -> int:
        """Those of the network; the baseline takes no epochs."""
        return self.network.num_fits(recipe)

    def unused_data(self, recipe: Recipe, graph: Graph) -> list[str]:
        """What the network does not use."""
        return self.network.unused_data(recipe, graph)


def scores_of(outputs: NDArray[Any], task: Task) -> NDArray[np.float32]:
    """b(S), from the outputs of a baseline.

    Shapes:
        outputs, returns: (n, outputs).

    Example:
        >>> np.exp(scores_of(np.log([[0.5, 0.5], [1.0, 1e-9]]), "binary").astype(float)).round(2).tolist()
        [[0.5, 0.5], [0.99, 0.01]]
    """
    values = np.asarray(outputs, np.float64)
    if task == "multi-label":
        values = special.logit((1 - _SHARED_OUT) * special.expit(values) + _SHARED_OUT / 2)
    elif task != "regression":
        values = np.log((1 - _SHARED_OUT) * special.softmax(values, axis=1) + _SHARED_OUT / values.shape[1])
    return values.astype(np.float32)


def open_scores(baseline: Model, checkpoint: Checkpoint, graph: Graph) -> Scores:
    """b(S) of any subgraphs, by a fitted baseline."""
    fitted = baseline.open(checkpoint, graph, Opening(torch.device("cpu")))
    return lambda subgraphs: scores_of(fitted.outputs(subgraphs), checkpoint.spec.task)


def fit_baseline(baseline: Model, data: TrainingData, recipe: Recipe) -> tuple[Checkpoint, NDArray[np.float32]]:
    """Fit a baseline to the training split.

    Args:
        recipe: of the run; its sections ``baseline`` and ``wlks`` have the baseline's options.

    Shapes:
        returns: the checkpoint, titled by what was chosen on validation; b(S) of all subgraphs (n, outputs).
    """
    subgraphs = data.subgraphs
    data = replace(data, device=torch.device("cpu"), vectors=None, on_prepare=None)
    alone = Recipe(method=recipe.model.baseline, baseline=recipe.baseline, wlks=recipe.wlks)
    candidates, examples = _unfitted(baseline, data, alone)
    scores = []
    for candidate in candidates:
        cast(Solvable, candidate.network).solve(examples)
        score, loss = validation_score(*evaluate(candidate.network, examples, examples.val, _BATCH))
        scores.append((score, -loss))
    chosen = candidates[max(range(len(scores)), key=lambda i: (scores[i], -i))]
    outputs = outputs_of(chosen.network, examples.inputs, np.arange(len(subgraphs)), _BATCH).numpy()
    checkpoint = Checkpoint(
        replace(chosen.checkpoint.spec, title=chosen.name),
        {name: value.detach().cpu().clone() for name, value in chosen.network.state_dict().items()},
    )
    train = subgraphs.indices("train")
    # Groups are kept whole in the folds only where the split keeps them whole.
    dealt = replace(subgraphs, groups=whole_groups(subgraphs)).take(train)
    outputs[train] = _cross_fitted(baseline, replace(data, subgraphs=dealt), checkpoint.spec, chosen.recipe)
    return checkpoint, scores_of(outputs, subgraphs.task)


def _cross_fitted(baseline: Model, data: TrainingData, chosen: ModelSpec, recipe: Recipe) -> NDArray[np.float32]:
    """Outputs of the chosen baseline for each training subgraph when fitted without its fold.

    Shapes:
        returns: (training subgraphs, outputs).
    """
    train = data.subgraphs
    folds = draw_folds(train, data.seed, "baselines/folds", folds=FOLDS)
    if folds.max() == 0:
        of = "different nodes" if train.groups is None else "different nodes and groups"
        what = f"cross-fitting needs two training subgraphs of {of}, and there is one"
        raise DataError(what, where="train", hint="without: model.baseline=none")
    found = np.empty((len(train), chosen.num_outputs), np.float32)
    for fold in np.unique(folds):
        out = np.flatnonzero(folds == fold)
        splits = np.where(folds == fold, SPLITS.index("test"), SPLITS.index("train")).astype(np.int8)
        without = replace(data, subgraphs=replace(train, splits=splits))
        (candidate, *_), examples = _unfitted(baseline, without, recipe)
        cast(Solvable, candidate.network).solve(examples)
        outputs = outputs_of(candidate.network, examples.inputs, out, _BATCH).numpy()
        found[out] = _in_units_of(chosen.standards, outputs, candidate.checkpoint.spec.standards)
    return found


def _in_units_of(wanted: dict[str, Standard], outputs: NDArray[np.float32], own: dict[str, Standard]) -> NDArray[Any]:
    """Values standardised by all training subgraphs, from those standardised by the folds that were fitted to."""
    if "target" not in own:
        return outputs
    return wanted["target"](outputs * own["target"].deviation + own["target"].mean)


def _unfitted(baseline: Model, data: TrainingData, recipe: Recipe) -> tuple[list[Candidate], Examples]:
    """The candidates that are solved in one go, and examples to fit them to."""
    found = baseline.set_up(data, recipe)
    examples = Examples.of(data.subgraphs, list(found.sources), found.candidates[0].checkpoint.spec.standards)
    return [candidate for candidate in found.candidates if isinstance(candidate.network, Solvable)], examples
