"""The interface of models: what a model needs and can do, how it is fitted, and how a fitted one predicts.

A model is anything that predicts subgraphs from labelled ones: SubGNN, a baseline, a portfolio of both.
:mod:`subgnn.models.registry` has a table of them by name; no other code asks which model it deals with. A model may be
built of others, its parts: a network and the baseline whose scores it corrects, a portfolio and its members.

==================  ================================================================================================
Model               opens checkpoints and checks them: all that a portfolio has
TrainableModel      can be fitted; :class:`~subgnn.models.tensor_model.TensorModel` implements most of it for models
                    that are a dictionary of tensors
ChannelModel        a network of channels, SubGNN: explained by anchors, as an ensemble, correcting a baseline
==================  ================================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import MethodSettings, ModelRecipe, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import PRETRAINED
from subgnn.models.examples import Examples, Source
from subgnn.models.spec import Checkpoint, ModelSpec, Weights
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.ragged import Ragged
from subgnn.task import Thresholds

if TYPE_CHECKING:
    import torch

Vectors = NDArray[np.float32] | None
"""Embeddings of all nodes (N, d) that a model starts from; None if it has none, or if they are random."""
Settings = ModelRecipe

View = Literal["nothing", "nodes", "shape", "surroundings", "everything"]
"""What a model sees of a subgraph; ``surroundings``: its nodes, and those around them."""
BATCH = 4096
"""Subgraphs in a batch of predictions, whatever the memory at hand."""
CACHED_NUMBERS = 2**24
"""Numbers in a table of vectors of all nodes that is cached between predictions."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """A dataset as models are set up from it; the graph is undirected.

    ``cache`` allows prepared subgraphs to be read from the cache and left there. ``scores`` are those of a baseline
    that the model is to correct (n, outputs).
    """

    graph: Graph
    subgraphs: SubgraphSet
    seed: int
    device: torch.device
    vectors: Vectors = None
    cache: bool = True
    on_prepare: OnProgress = ignore
    scores: NDArray[np.float32] | None = None


@runtime_checkable
class Solvable(Protocol):
    """A network that is fitted in one go, not by gradient steps."""

    def solve(self, examples: Examples) -> None:
        """Fit to the training split."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A network to be fitted, and the checkpoint that its weights go into.

    A recipe may leave a choice open: each way to make it is a candidate, and validation selects one. Members of an
    ensemble are candidates that are all kept. ``name`` is empty if there is one candidate. ``recipe`` has the choices
    made. ``seed`` is that of batches and dropout.
    """

    name: str
    network: Any
    checkpoint: Checkpoint
    recipe: Recipe
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class SetUp:
    """Candidates of a recipe, unfitted, and the subgraphs as their networks take them."""

    candidates: list[Candidate]
    source: Source

    def examples(self, subgraphs: SubgraphSet, recipe: Recipe, device: torch.device) -> Examples:
        standards = self.candidates[0].checkpoint.spec.standards
        return Examples.of(subgraphs, self.source.to(device), standards, recipe.training)


@dataclass(frozen=True, slots=True, eq=False)
class LoadContext:
    """How a checkpoint is opened for prediction.

    ``tables`` are node embeddings (N, d) by their hash. ``cached_numbers`` bounds tables of vectors that are cached
    between predictions. ``parts`` are the models that this one is built of, opened, by their names in the checkpoint.
    With ``cache``, what is computed of the training subgraphs, and of shared anchors in a large graph, is stored in the
    cache folder.
    """

    device: torch.device | str
    tables: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    cached_numbers: int = CACHED_NUMBERS
    parts: Mapping[str, FittedModel] = field(default_factory=dict)
    cache: bool = False

    def vectors(self, spec: ModelSpec) -> Vectors:
        """The node embeddings that a model started from; None if they are random."""
        return self.tables.get(spec.vectors_hash)


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """The statistics of subgraphs that a model decides by, in plain units.

    Shapes:
        values: (n, statistics). known: (m, statistics), of the training subgraphs, or their means alone.
        without: (n, statistics, outputs), the outputs with a statistic at its median over those known.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    known: NDArray[np.float64]
    without: NDArray[np.float32]


class FittedModel(ABC):
    """A fitted model, ready to predict.

    An output is a function of a subgraph's nodes and the checkpoint alone: not of the batch, and not of whether the
    subgraph was in the training split. ``thresholds`` are the probabilities above which a label, or the positive one of
    two classes, is predicted (:data:`~subgnn.task.Thresholds`).
    """

    thresholds: Thresholds = 0.5

    @abstractmethod
    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits, or standardised values for regression (n, outputs)."""

    @abstractmethod
    def vectors(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """The vector of each subgraph, as the last part of the model receives it (n, width)."""

    def statistics(self, subgraphs: Ragged) -> Statistics | None:
        """The statistics that the model decides by, to explain its outputs; None if it does not."""
        return None


class FittedChannelModel(FittedModel):
    """A fitted model whose predictions are explained by channels and anchors."""

    @abstractmethod
    def networks(self) -> Sequence[Any]:
        """The networks, over the nodes they were fitted with."""

    @abstractmethod
    def measured(self, subgraphs: Ragged) -> Any:
        """Subgraphs measured against anchors."""


class Model(ABC):
    """A kind of model, as its checkpoints are checked and opened; one that is trained is a :class:`TrainableModel`.

    Attributes say what it needs and can do:

    - ``settings``: the settings of its own, a dataclass for each section; their ``section`` is its name in a recipe.
    - ``needs_edges``: it cannot be fitted on a graph without edges.
    - ``extra``: the extra of this package that has to be installed for it; empty if none.
    - ``predicts_new_subgraphs``: it predicts subgraphs that were not in the dataset it was fitted to.
    - ``vectors_need_labels``: its vectors are learned from labels; without, they are known when it is set up.
    - ``measures_at_own_time``: it can measure each subgraph on the graph as it was at the subgraph's time.
    - ``on_new_graph``: what it does on a graph other than the one it was fitted to, in one line; empty if it cannot.
    """

    settings: tuple[type[MethodSettings], ...] = ()
    needs_edges: bool = True
    extra: str = ""
    predicts_new_subgraphs: bool = True
    vectors_need_labels: bool = True
    measures_at_own_time: bool = False
    on_new_graph: str = ""

    def uses_tensors(self, settings: Settings) -> bool:
        """Whether its weights are tensors; otherwise they are NumPy arrays, and PyTorch is not imported to predict."""
        return True

    @abstractmethod
    def open(self, checkpoint: Checkpoint, graph: Graph, context: LoadContext) -> FittedModel:
        """A fitted model from its checkpoint, which has been checked; the graph is undirected."""

    @abstractmethod
    def expected_weights(self, checkpoint: Checkpoint, graph: Graph) -> Weights:
        """Weights of the names, shapes and types that a checkpoint should have; tensors on the device ``meta``.

        The checkpoint is that of one network, its weights of any content.
        """

    def problems(self, checkpoint: Checkpoint, graph: Graph) -> Iterator[str]:
        """Descriptions of anything wrong with a checkpoint that was read from a file, beyond :meth:`expected_weights`.

        Compiled code trusts node ids and offsets, so all of them have to be checked.
        """
        yield from ()

    def moved(self, checkpoint: Checkpoint, match: NodeMatch, vectors: Vectors) -> Checkpoint:
        """The checkpoint with the nodes of another graph in place of those it was fitted to (``on_new_graph``).

        Whatever names a node has to be renumbered, and what was measured on the old graph is measured on the new one.
        The hashes of the specification, and its parts, are renewed by the caller. ``vectors`` are the node embeddings,
        of the old graph, that the model started from; None if they are random.
        """
        return checkpoint

    def standards(self, spec: ModelSpec, graph: Graph) -> dict[str, int]:
        """Widths of the means and deviations that a specification should have, by name, besides those of targets."""
        return {}

    def uses_embeddings(self, settings: Settings) -> bool:
        return False


class TrainableModel(Model):
    """A model that is trained by one fit.

    - ``trains_on_many_devices``: its training may be spread over several devices.
    - ``is_fitted_in_one_go``: a network may correct its scores; it is not fitted by gradient steps.
    - ``switches``: settings, as after --set, with which it uses an attribute of the graph that it otherwise ignores.
    - ``view``: what it sees of a subgraph, whatever its settings.
    """

    trains_on_many_devices: bool = False
    is_fitted_in_one_go: bool = False
    switches: Mapping[str, str] = MappingProxyType({})
    view: View = "everything"

    @abstractmethod
    def set_up(self, data: TrainingData, recipe: Recipe) -> SetUp:
        """Set up the candidates to fit; this may read all node sets, but labels of the training split alone."""

    def sees(self, settings: Settings) -> View:
        """What the model sees of a subgraph, for a verdict on what labels depend on."""
        return self.view

    def check(self, recipe: Recipe, graph: Graph) -> None:
        """Raise :class:`~subgnn.errors.UserError` for settings that do not fit together, or do not fit the graph."""

    def check_as_baseline(self, recipe: Recipe) -> None:
        """Raise :class:`~subgnn.errors.UserError` for settings with which it is not fitted in one go."""

    def candidates(self, recipe: Recipe) -> dict[str, Recipe]:
        """The recipe with each way to make the choices it leaves open, by name."""
        return {"": recipe}

    def shared_pieces(self, recipe: Recipe, graph: Graph, nodes: Ragged) -> list[list[Any]]:
        """Work that fits to all splits of these subgraphs share, in stages; pieces of a stage may run at once.

        A piece is called with the undirected graph and the nodes of the subgraphs, can be sent to other processes, and
        equals a piece of another recipe if the work is the same; ``of_graph`` says that it is so for any subgraphs.
        Processes share the results within :func:`~subgnn.models.kernel_machines.shared.share_views`; what was not
        computed before is computed by fits.
        """
        return []

    def num_fits(self, recipe: Recipe) -> int:
        """How many networks are fitted: one for each candidate, or for each member of an ensemble."""
        return recipe.training.members * len(self.candidates(recipe))

    def uses(self, recipe: Recipe) -> frozenset[str]:
        """What the model uses of a graph that has it, beside nodes and edges: keys of ``ATTRIBUTES``.

        A model that starts from pretrained embeddings uses what pretraining uses. The baseline that a network corrects
        is not counted here (:func:`~subgnn.models.recipes.used_attributes`).
        """
        pretrained = self.uses_embeddings(recipe) and recipe.embeddings.source in PRETRAINED
        return frozenset({"features"}) if pretrained else frozenset()


class ChannelModel(TrainableModel):
    """A network of channels.

    Its predictions are explained by channels and anchors. It may be an ensemble (``training.members``), and may correct
    the scores of a baseline (``model.baseline``).
    """

    @abstractmethod
    def check_inputs(self, recipe: Recipe) -> None:
        """Raise :class:`~subgnn.errors.UserError` if the network would see nothing of a subgraph.

        A search may start from such a recipe: only the settings of its trials count.
        """
