"""A baseline for a network to correct: fitted, and cross-fitted on the training split; beyond the paper.

A network that corrects a baseline learns what the baseline leaves over. On the subgraphs a baseline was fitted to it
leaves over too little: there it is right more often than it will be elsewhere. So the training split is dealt into five
folds, as subgraphs were dealt to training and validation (equal nodes together, and whole groups), and the scores of
each fold come from a baseline that was fitted to the other four. All other subgraphs have the scores of the baseline
fitted to the whole training split. Choices that the baseline leaves open are made once, on the validation split, by the
fit to the whole training split, and kept for the folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.channels.topology import Standard
from subgnn.config.settings import Method, Recipe
from subgnn.data.graph import Graph
from subgnn.data.splits import split_units, whole_groups
from subgnn.data.subgraphs import SPLITS, SubgraphSet
from subgnn.errors import DataError
from subgnn.kernels import node_set_keys
from subgnn.models.registry import set_up
from subgnn.models.scores import scores_of
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.models.subgnn.build import label_unit, target_tensor
from subgnn.rng import stream_key
from subgnn.training.candidates import Candidate, Solvable, best_of, judge_solved
from subgnn.training.evaluation import Examples, outputs_of

FOLDS = 5
_BATCH = 256


def fit_baseline(
    graph: Graph, subgraphs: SubgraphSet, recipe: Recipe, *, seed: int
) -> tuple[Checkpoint, NDArray[np.float32]]:
    """The baseline of ``model.baseline``, fitted to the training split, and b(S) of all subgraphs.

    Args:
        graph: undirected.
        recipe: of the run; its section ``baseline`` has the baseline's options.

    Shapes:
        returns: the checkpoint, which is named by what was chosen on validation; (n, outputs).
    """
    own = Recipe(method=cast(Method, recipe.model.baseline), baseline=recipe.baseline)
    candidates, examples = _unfitted(graph, subgraphs, own, seed)
    fitted = []
    for candidate in candidates:
        cast(Solvable, candidate.model).solve(examples)
        fitted.append(judge_solved(candidate.model, examples, _BATCH)[0])
    chosen = best_of(fitted)
    kept = candidates[chosen]
    outputs = outputs_of(kept.model, examples.inputs, np.arange(len(subgraphs)), _BATCH).numpy()
    checkpoint = replace(
        kept.checkpoint,
        spec=replace(kept.checkpoint.spec, title=kept.name),
        weights=fitted[chosen].best_state,
    )
    train = subgraphs.indices("train")
    # Validation is asked about groups of its own only where the split keeps groups whole; so are the folds.
    dealt = replace(subgraphs, groups=whole_groups(subgraphs)).take(train)
    outputs[train] = _cross_fitted(graph, dealt, checkpoint.spec, kept.recipe, seed)
    return checkpoint, scores_of(outputs, subgraphs.task)


def draw_folds(subgraphs: SubgraphSet, seed: int) -> NDArray[np.int64]:
    """A fold for each subgraph: equal shares of each class, and subgraphs of equal nodes or one group in one fold.

    Such sets of subgraphs are dealt out class by class, the larger ones first and equals in a random order, each to the
    fold with the fewest subgraphs of that class, and of all; its class is what most of its subgraphs have. Several
    labels and real values are ignored. The order of the subgraphs has no part in it.

    Shapes:
        returns: (n,), from 0 to 4; fewer where there are fewer such sets.

    Raises:
        DataError: where there is one such set alone.
    """
    unit = split_units(subgraphs, subgraphs.groups)
    sizes = np.bincount(unit)
    if len(sizes) < 2:
        of = "different nodes" if subgraphs.groups is None else "different nodes and groups"
        what = f"cross-fitting needs two training subgraphs of {of}, and there is one"
        raise DataError(what, where="train", hint="without: model.baseline=none")
    single = subgraphs.task in ("binary", "multi-class")
    labels = np.asarray(subgraphs.targets, np.int64) if single else np.zeros(len(unit), np.int64)
    counts = np.zeros((len(sizes), int(labels.max()) + 1), np.int64)
    np.add.at(counts, (unit, labels), 1)
    stratum = counts.argmax(axis=1)
    key = np.full(len(sizes), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(key, unit, node_set_keys(stream_key(seed, "baselines/folds"), subgraphs.nodes))
    have = np.zeros((counts.shape[1], FOLDS), np.int64)
    fold = np.empty(len(sizes), np.int64)
    for i in np.lexsort((key, -sizes, stratum)):
        fold[i] = np.lexsort((have.sum(axis=0), have[stratum[i]]))[0]
        have[stratum[i], fold[i]] += sizes[i]
    return fold[unit]


def _cross_fitted(
    graph: Graph, train: SubgraphSet, chosen: ModelSpec, recipe: Recipe, seed: int
) -> NDArray[np.float32]:
    """What the chosen baseline answers for each training subgraph when fitted without its fold.

    Shapes:
        returns: (training subgraphs, outputs).
    """
    folds = draw_folds(train, seed)
    found = np.empty((len(train), chosen.num_outputs), np.float32)
    for fold in np.unique(folds):
        out = np.flatnonzero(folds == fold)
        splits = np.where(folds == fold, SPLITS.index("test"), SPLITS.index("train")).astype(np.int8)
        (candidate, *_), examples = _unfitted(graph, replace(train, splits=splits), recipe, seed)
        cast(Solvable, candidate.model).solve(examples)
        outputs = outputs_of(candidate.model, examples.inputs, out, _BATCH).numpy()
        found[out] = _in_units_of(chosen.standards, outputs, candidate.checkpoint.spec.standards)
    return found


def _in_units_of(wanted: dict[str, Standard], outputs: NDArray[np.float32], own: dict[str, Standard]) -> NDArray[Any]:
    """Values standardised by all training subgraphs, from those standardised by the folds that were fitted to."""
    if "target" not in own:
        return outputs
    return wanted["target"](outputs * own["target"].deviation + own["target"].mean)


def _unfitted(graph: Graph, subgraphs: SubgraphSet, recipe: Recipe, seed: int) -> tuple[Sequence[Candidate], Examples]:
    """The candidates that are solved in one go, and what they learn from."""
    candidates, inputs = set_up(graph, subgraphs, recipe, seed=seed, device=torch.device("cpu"))
    examples = Examples(
        inputs=inputs,
        targets=target_tensor(subgraphs, candidates[0].checkpoint.spec.standards),
        task=subgraphs.task,
        train=subgraphs.indices("train"),
        val=subgraphs.indices("val"),
        num_classes=subgraphs.num_classes,
        unit=label_unit(candidates[0].checkpoint.spec.standards),
    )
    return [candidate for candidate in candidates if isinstance(candidate.model, Solvable)], examples
