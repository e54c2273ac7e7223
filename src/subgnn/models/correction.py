"""A network that corrects a baseline (``model.baseline``): b(S) plus what the network adds; beyond the paper.

b(S), the scores of the baseline, is the log-probability of each class; for multi-label, the log-odds of each label; for
regression, the standardised value. Of K classes, or of a label and its absence (K = 2), probabilities are first drawn a
little together, so that a network can overrule a baseline that was certain:

    p' = (1 - 0.02) p + 0.02 / K

On the subgraphs a baseline was fitted to, it is right more often than elsewhere. So the training split is divided into
five folds (equal nodes together, and whole groups), and in training the scores of each fold come from a baseline that
was fitted to the other four. All other subgraphs have, and in prediction all subgraphs have, the scores of the baseline
fitted to the whole training split. Choices that it leaves open are made once, on the validation split, by that fit.
"""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import Recipe, TrainingSettings
from subgnn.data.splits import draw_folds, whole_groups
from subgnn.data.subgraphs import SPLITS
from subgnn.errors import DataError
from subgnn.models.examples import Examples, evaluate, outputs_of, state_of, validation_score
from subgnn.models.interface import Candidate, Solvable, TrainableModel, TrainingData
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.parallel.progress import ignore
from subgnn.task import TaskName, task_of

FOLDS = 5
_BATCH = 256
_SHARED_OUT = 0.02


def scores_of(outputs: NDArray[Any], task: TaskName) -> NDArray[np.float32]:
    """b(S), from the outputs of a baseline (n, outputs).

    Example:
        >>> np.exp(scores_of(np.log([[0.5, 0.5], [1.0, 1e-9]]), "binary").astype(float)).round(2).tolist()
        [[0.5, 0.5], [0.99, 0.01]]
    """
    values = np.asarray(outputs, np.float64)
    if (kind := task_of(task)).has_classes:
        share = _SHARED_OUT / (2 if kind.several else values.shape[1])
        values = kind.outputs((1 - _SHARED_OUT) * kind.scores(values) + share)
    return values.astype(np.float32)


def fit_baseline(model: TrainableModel, data: TrainingData, recipe: Recipe) -> tuple[Checkpoint, NDArray[np.float32]]:
    """Fit a baseline to the training split: its checkpoint, titled by what was chosen, and b(S) of all subgraphs."""
    subgraphs = data.subgraphs
    data = replace(data, device=torch.device("cpu"), vectors=None, on_prepare=ignore)
    training = TrainingSettings(class_weights=recipe.training.class_weights, select_by=recipe.training.select_by)
    alone = Recipe(method=recipe.model.baseline, methods=recipe.methods, training=training)
    candidates, examples = _unfitted(model, data, alone)
    scores = []
    for candidate in candidates:
        cast(Solvable, candidate.network).solve(examples)
        score, loss = validation_score(*evaluate(candidate.network, examples, examples.val, _BATCH), examples.select_by)
        scores.append((score, -loss))
    chosen = candidates[max(range(len(scores)), key=lambda i: (scores[i], -i))]
    outputs = outputs_of(chosen.network, examples.inputs, np.arange(len(subgraphs)), _BATCH).numpy()
    checkpoint = Checkpoint(replace(chosen.checkpoint.spec, name=chosen.name), state_of(chosen.network))
    train = subgraphs.indices("train")
    # Groups are kept whole in the folds only where the split keeps them whole.
    dealt = replace(subgraphs, groups=whole_groups(subgraphs)).take(train)
    outputs[train] = _cross_fitted(model, replace(data, subgraphs=dealt), checkpoint.spec, chosen.recipe)
    return checkpoint, scores_of(outputs, subgraphs.task)


def _cross_fitted(model: TrainableModel, data: TrainingData, chosen: ModelSpec, recipe: Recipe) -> NDArray[np.float32]:
    """Outputs of the chosen baseline for each training subgraph when fitted without its fold."""
    train = data.subgraphs
    folds = draw_folds(train, data.seed, "baselines/folds", folds=FOLDS)
    if folds.max() == 0:
        of = "different nodes" if train.groups is None else "different nodes and groups"
        what = f"cross-fitting needs two training subgraphs of {of}, but there is only one"
        raise DataError(what, where="train", hint="without: model.baseline=none")
    found = np.empty((len(train), chosen.num_outputs), np.float32)
    for fold in np.unique(folds):
        out = np.flatnonzero(folds == fold)
        splits = np.where(folds == fold, SPLITS.index("test"), SPLITS.index("train")).astype(np.int8)
        (candidate, *_), examples = _unfitted(model, replace(data, subgraphs=replace(train, splits=splits)), recipe)
        cast(Solvable, candidate.network).solve(examples)
        found[out] = outputs_of(candidate.network, examples.inputs, out, _BATCH).numpy()
        if (own := candidate.checkpoint.spec.standards.get("target")) is not None:
            # Values were standardised by the folds that were fitted to.
            found[out] = chosen.standards["target"](found[out] * own.deviation + own.mean)
    return found


def _unfitted(model: TrainableModel, data: TrainingData, recipe: Recipe) -> tuple[list[Candidate], Examples]:
    """The candidates that are solved in one go, and examples to fit them to."""
    found = model.set_up(data, recipe)
    solvable = [candidate for candidate in found.candidates if isinstance(candidate.network, Solvable)]
    return solvable, found.examples(data.subgraphs, recipe, data.device)
