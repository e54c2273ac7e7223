"""Fit recipes in memory to parts of one dataset, as candidates of a portfolio are; nothing is written but caches."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.graph import Graph
from subgnn.data.subgraphs import SPLITS
from subgnn.embeddings.sources import source_vectors
from subgnn.embeddings.stored import vectors_hash
from subgnn.errors import DataWarning
from subgnn.models.examples import Examples, outputs_of
from subgnn.models.interface import Solvable, TrainingData, Vectors
from subgnn.models.registry import model_of, set_up_model
from subgnn.models.spec import Checkpoint
from subgnn.task import task_of
from subgnn.training.candidates import Selected, best_of, fit_candidate, select_model, set_up
from subgnn.training.devices import make_fabric
from subgnn.training.loop import Progress
from subgnn.training.options import Callbacks
from subgnn.training.steps import Fitting

TRAIN, VAL, HELD_OUT = (SPLITS.index(split) for split in ("train", "val", "test"))
_BATCH = 256


class Stopped(Exception):
    """A fit was stopped between two epochs."""


def stored_checkpoint(checkpoint: Checkpoint, vectors: Vectors) -> Checkpoint:
    """The checkpoint that predictions need: further draws of anchors only where predictions are means over them.

    Args:
        vectors: the table of node embeddings that the model started from.
    """
    redrawn = checkpoint.spec.redrawn if checkpoint.spec.prepare.ensemble else []
    named = "" if vectors is None else vectors_hash(vectors)
    return replace(checkpoint, spec=replace(checkpoint.spec, redrawn=redrawn, vectors_hash=named))


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted recipe: its network and checkpoint, and the subgraphs as the network takes them.

    ``seconds`` are those of the fit without the preparation before it.
    """

    selected: Selected
    examples: Examples
    vectors: Vectors
    seconds: float

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that predictions need."""
        return stored_checkpoint(self.selected.checkpoint, self.vectors)

    def predictions(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probabilities, or values in units of the label, for subgraphs of the dataset (rows, outputs)."""
        draws = [outputs_of(self.selected.network, inputs, rows, _BATCH) for inputs in self.examples.judged]
        outputs = torch.stack(draws).mean(dim=0).cpu()
        target = self.selected.checkpoint.spec.standards.get("target")
        return task_of(self.examples.task).scores(outputs.numpy(), target)


@dataclass(slots=True)
class Fitter:
    """Fits recipes to parts of a dataset.

    Attributes:
        dataset: its splits are ignored.
        stop: asked after every epoch; if it says so, the fit raises :class:`Stopped`.
    """

    dataset: Dataset
    seed: int
    device: str = "auto"
    cache: bool = True
    callbacks: Callbacks = field(default_factory=Callbacks)
    stop: Callable[[], bool] = lambda: False
    _tables: dict[str, Vectors] = field(default_factory=dict)
    _graph: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The undirected graph."""
        self._graph = self._graph or self.dataset.graph.undirected()
        return self._graph

    def vectors(self, recipe: Recipe) -> Vectors:
        """The table of node embeddings of a recipe, computed once; None for random ones and models without."""
        if not model_of(recipe).uses_embeddings(recipe) or recipe.embeddings.source == "random":
            return None
        settings = {"embeddings": asdict(recipe.embeddings), "pretrain": asdict(recipe.pretrain)}
        key = json.dumps(settings, sort_keys=True)
        if key not in self._tables:
            report = self.callbacks.on_pretrain
            self._tables[key] = source_vectors(
                recipe, self.graph, device=self.device, cache=self.cache, on_epoch=report
            )
        return self._tables[key]

    def fit(self, recipe: Recipe, splits: NDArray[np.int8], *, join: bool) -> Fit:
        """Fit a recipe.

        Args:
            splits: which subgraphs are to learn from (0), to choose on (1), and held out (2).
            join: solve a model that is fitted in one go again on the first two, after its choices are made.
        """
        vectors, fabric = self.vectors(recipe), make_fabric(self.device)
        dataset = replace(self.dataset, subgraphs=replace(self.dataset.subgraphs, splits=splits))

        def after_epoch(record: dict[str, Any], *_: Any) -> None:
            self.callbacks.on_epoch(record)
            if self.stop():
                raise Stopped

        with warnings.catch_warnings():
            # The whole set was checked before; a fold may well lack a class.
            warnings.simplefilter("ignore", DataWarning)
            candidates, examples = set_up(
                dataset,
                recipe,
                self.seed,
                fabric.device,
                vectors=vectors,
                cache=self.cache,
                on_prepare=self.callbacks.on_prepare,
            )
        begin = time.monotonic()
        (first, *others), solvable = candidates, isinstance(candidates[0].network, Solvable)
        if join and solvable and not others:  # no choice is left to be made on validation
            selected = Selected(first.network, first.checkpoint, Progress(epoch=1), {})
            selected, examples = self._solve(first.recipe, splits, selected, fabric.device)
            return Fit(selected, examples, vectors, time.monotonic() - begin)
        fitted = [
            fit_candidate(
                candidate,
                Fitting(examples, candidate.recipe.training, candidate.seed, fabric),
                resume=None,
                after_epoch=after_epoch,
            )
            for candidate in candidates
        ]
        selected = select_model(candidates, fitted, examples, recipe.training)
        if join and isinstance(selected.network, Solvable):
            selected, examples = self._solve(candidates[best_of(fitted)].recipe, splits, selected, fabric.device)
        return Fit(selected, examples, vectors, time.monotonic() - begin)

    def _solve(
        self, recipe: Recipe, splits: NDArray[np.int8], selected: Selected, device: torch.device
    ) -> tuple[Selected, Examples]:
        """Solve a model whose choices are made on the subgraphs of both splits."""
        joined = np.where(splits == VAL, TRAIN, splits).astype(np.int8)
        subgraphs = replace(self.dataset.subgraphs, splits=joined)
        data = TrainingData(self.graph, subgraphs, self.seed, device, vectors=self.vectors(recipe), cache=self.cache)
        found = set_up_model(data, recipe)
        examples = Examples.of(
            subgraphs,
            [source.to(device) for source in found.sources],
            found.candidates[0].checkpoint.spec.standards,
            recipe.training,
            ensemble=recipe.prepare.ensemble,
        )
        network = found.candidates[0].network.to(device)
        cast(Solvable, network).solve(examples)
        state = {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}
        checkpoint = replace(found.candidates[0].checkpoint, weights=model_of(recipe).stored_weights(state))
        return replace(selected, network=network, checkpoint=checkpoint), examples
