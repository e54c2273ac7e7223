"""Models whose state is a dictionary of tensors or arrays: most of the interface, implemented once.

Such a model is a few functions. ``start`` makes the tensors that exist before training; ``network`` makes a network
from tensors, whose ``state_dict`` has all of them again, beside what was learned: that is what a checkpoint holds. So
training and prediction build the same network from the same kind of dictionary, and nothing is pickled. ``inputs``
gives subgraphs as the network takes them, and ``problems`` checks tensors that were read from a file.

A model that is fitted in one go does not need PyTorch, which takes a second to import: its tensors are NumPy arrays,
and its network is an :class:`ArrayNetwork`. A network takes what ``inputs(...).batch(rows)`` gives, and has ``embed``
(the vector of each subgraph) and ``forward`` (its outputs). One with ``solve`` is fitted in one go
(:class:`~subgnn.models.interface.Solvable`), the others by the training loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from subgnn.config.files import apply_override, parse_table
from subgnn.config.settings import MethodSettings, Recipe
from subgnn.data.graph import Graph
from subgnn.errors import UserError, choices, excerpt
from subgnn.models.examples import HostSource, Source, in_batches
from subgnn.models.interface import (
    BATCH,
    Candidate,
    FittedModel,
    LoadContext,
    Settings,
    SetUp,
    Statistics,
    TrainableModel,
    TrainingData,
    Vectors,
)
from subgnn.models.spec import Checkpoint, ModelSpec, Weights, settings_of
from subgnn.ragged import Ragged
from subgnn.rng import stream_key

if TYPE_CHECKING:
    from torch import nn


class TensorModel(TrainableModel):
    """A model that is a dictionary of tensors.

    ``network`` makes the network over a checkpoint's tensors; what is learned need not be among them yet.
    """

    network: Callable[[Checkpoint], nn.Module | ArrayNetwork]

    @abstractmethod
    def start(self, data: TrainingData, recipe: Recipe) -> Weights:
        """The tensors that exist before training, named as in the network's ``state_dict``."""

    @abstractmethod
    def inputs(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged) -> Source:
        """Subgraphs as the network takes them."""

    def on_open(self, network: Any, graph: Graph, context: LoadContext) -> None:
        """Give a fitted network what it needs beside its tensors; nothing by default."""

    def extend(self, checkpoint: Checkpoint, graph: Graph, nodes: Ragged, vectors: Vectors) -> Checkpoint:
        """The checkpoint with rows for nodes that are first met in prediction; the same object if it has them all."""
        return checkpoint

    def statistics(self, checkpoint: Checkpoint, network: Any, graph: Graph, nodes: Ragged) -> Statistics | None:
        return None

    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        spec = ModelSpec.for_recipe(recipe, data.graph, data.subgraphs, seed=data.seed)
        checkpoint = Checkpoint(spec, self.start(data, recipe))
        candidates = []
        for name, resolved in self.candidates(recipe).items():
            unfitted = replace(checkpoint, spec=replace(spec, **settings_of(resolved)))
            if self.uses_tensors(unfitted.spec):
                import torch

                with torch.random.fork_rng():
                    torch.manual_seed(stream_key(data.seed, "initialisation"))
                    network: Any = self.network(unfitted)
            else:
                network = self.network(unfitted)
            if not hasattr(network, "embed"):
                hint = "a network needs the methods embed and forward, which take a batch"
                raise UserError("the network has no method embed", where=f"the model {recipe.method}", hint=hint)
            candidates.append(Candidate(name, network, unfitted, resolved, data.seed))
        return SetUp(candidates, self.inputs(checkpoint, data.graph, data.subgraphs.nodes))

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        return head_candidates(recipe) if PaperBaselineSettings in self.settings else super().candidates(recipe)

    def open(self, checkpoint: Checkpoint, graph: Graph, context: LoadContext) -> FittedModel:
        return _FittedTensorModel(self, checkpoint, graph, context)

    def expected_weights(self, checkpoint: Checkpoint, graph: Graph) -> Weights:
        if not self.uses_tensors(checkpoint.spec):
            return self.network(checkpoint).state_dict()
        import torch

        empty = {name: weight.to("meta") for name, weight in checkpoint.weights.items()}
        with torch.device("meta"):
            return self.network(replace(checkpoint, weights=empty)).state_dict()


class _FittedTensorModel(FittedModel):
    """The network is built once, and again only for nodes it has no rows for."""

    def __init__(self, model: TensorModel, checkpoint: Checkpoint, graph: Graph, context: LoadContext) -> None:
        self.model, self.checkpoint, self.graph, self.context = model, checkpoint, graph, context
        self._vectors = context.vectors(checkpoint.spec)
        self._network = self._build(checkpoint)

    def _build(self, checkpoint: Checkpoint) -> Any:
        network = self.model.network(checkpoint)
        network.load_state_dict(checkpoint.weights)
        self.model.on_open(network, self.graph, self.context)
        return network.to(self.context.device).eval()

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        return self._compute(subgraphs, "forward")

    def vectors(self, subgraphs: Ragged) -> NDArray[np.float32]:
        return self._compute(subgraphs, "embed")

    def statistics(self, subgraphs: Ragged) -> Statistics | None:
        return self.model.statistics(self.checkpoint, self._network, self.graph, subgraphs)

    def _compute(self, subgraphs: Ragged, what: str) -> NDArray[np.float32]:
        extended = self.model.extend(self.checkpoint, self.graph, subgraphs, self._vectors)
        network = self._network if extended is self.checkpoint else self._build(extended)
        inputs, rows = self.model.inputs(extended, self.graph, subgraphs), np.arange(len(subgraphs))
        if isinstance(network, ArrayNetwork):
            return np.concatenate(list(in_batches(getattr(network, what), inputs, rows, BATCH)))
        import torch

        inputs.to(torch.device(self.context.device))
        with torch.no_grad():
            parts = list(in_batches(getattr(network, what), inputs, rows, BATCH))
        return torch.cat(parts).float().cpu().numpy()


class ArrayModel(TensorModel):
    """A model that is a dictionary of NumPy arrays, fitted in one go; its subgraphs are measured at their own times."""

    is_fitted_in_one_go = True
    measures_at_own_time = True

    def uses_tensors(self, settings: Settings) -> bool:
        return False


class ArrayNetwork(ABC):
    """A network that is a dictionary of NumPy arrays; they are its attributes, too, by their names."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = dict(arrays)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["arrays"][name]
        except KeyError:
            raise AttributeError(name) from None

    @abstractmethod
    def embed(self, batch: Any) -> NDArray[np.float32]:
        """The vector of each subgraph (n, width)."""

    def forward(self, batch: Any) -> NDArray[np.float32]:
        """Logits, or one value for regression (n, outputs); by default the vectors."""
        return self.embed(batch)

    def __call__(self, batch: Any) -> NDArray[np.float32]:
        return self.forward(batch)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        return dict(self.arrays)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.arrays = {name: np.asarray(value) for name, value in state.items()}

    def to(self, device: object) -> Self:  # arrays stay in main memory
        return self

    def eval(self) -> Self:
        return self


class Rows(HostSource):
    """A row of a tensor, or of an array, perhaps a sparse one, for each subgraph; a batch is the chosen rows."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def batch(self, rows: NDArray[np.int64]) -> Any:
        chosen = self.rows[rows]
        return chosen.to(self.device) if hasattr(chosen, "to") else chosen


@dataclass(frozen=True, slots=True)
class PaperBaselineSettings(MethodSettings):
    """Settings of the paper's baselines (avg, mn, s2v, gc)."""

    section: ClassVar[str] = "baseline"
    tune_embeddings: bool = False
    tune_settings: tuple[tuple[str, ...], ...] = ()


TUNABLE = (
    "training.lr",
    "training.batch_size",
    "training.weight_decay",
    "training.clip",
    "training.epochs",
    "model.head",
    "model.dropout",
)
"""Settings of the head and its training, in which candidates may differ: they share everything before the head."""


def tuned_recipes(recipe: Recipe) -> dict[str, Recipe]:
    """The recipe with each of its ``baseline.tune_settings``, by the settings; without any, itself under no name."""
    where, settings = "baseline.tune_settings", recipe.of(PaperBaselineSettings)
    if not settings.tune_settings:
        return {"": recipe}
    plain, found = recipe.with_method_settings(replace(settings, tune_settings=())), {}
    for overrides in settings.tune_settings:
        sections: dict[str, Any] = {}
        for override in overrides:
            key = override.partition("=")[0].strip()
            if key not in TUNABLE:
                raise UserError(excerpt(override), where=where, hint=choices(key, TUNABLE))
            apply_override(sections, override)
        changed = {
            name: parse_table(type(getattr(recipe, name)), asdict(getattr(recipe, name)) | values, where, name)
            for name, values in sections.items()
        }
        found[", ".join(overrides)] = replace(plain, **changed)
    if len(found) < len(settings.tune_settings):
        raise UserError("the same settings occur twice", where=where, hint="give each list of settings once")
    return found


def head_candidates(recipe: Recipe) -> dict[str, Recipe]:
    """Frozen and trainable embeddings, or the one the recipe names, with each of the settings it leaves open."""
    found, open_choice = {}, recipe.of(PaperBaselineSettings).tune_embeddings
    for settings, tuned in tuned_recipes(recipe).items():
        for name, trainable in {"frozen": False, "trainable": True}.items():
            if open_choice or trainable == recipe.embeddings.trainable:
                embeddings = replace(recipe.embeddings, trainable=trainable)
                found[f"{name}, {settings}" if settings else name] = replace(tuned, embeddings=embeddings)
    return found


def is_sorted_below(ids: NDArray[Any], end: int, dtype: type[np.integer[Any]] = np.int32) -> bool:
    """Whether ids are a row of numbers of a type that rise, from 0 or more, and stay below ``end``."""
    if ids.ndim != 1 or ids.dtype != dtype:
        return False
    return not len(ids) or bool(ids[0] >= 0 and ids[-1] < end and (ids[1:] > ids[:-1]).all())
