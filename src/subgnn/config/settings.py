"""Typed settings of a run: a dataclass for each section of a recipe.

Sections of single methods are declared beside the models that use them (:class:`MethodSettings`);
:mod:`subgnn.models.recipes` reads and checks them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from subgnn.config.numbers import LARGEST, Bounds, Count, Depth, Probability, Seed, Size, Width

PORTFOLIO = "auto"
"""The method of a portfolio of recipes."""


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """One subchannel: a property, a side of the component, and a number of anchors.

    Kinds, sides and similarities are those of :mod:`subgnn.channels.table`; no similarity is the channel's own.
    """

    kind: str
    side: str
    num_anchors: Size
    similarity: str = ""

    @property
    def name(self) -> str:
        """``kind/side``."""
        return f"{self.kind}/{self.side}"


@dataclass(frozen=True, slots=True)
class PrepareSettings:
    """Anchors and similarities.

    hops is k of the border. Patches are the nodes of triangular walks of
    patch_length nodes; over each, walks x walk_length are walked. beta is the parameter of the walks.

    draws is the number of independent draws of all anchors: epoch e trains on draw e mod draws, so that as many draws
    as epochs are anchors drawn anew every epoch. Each is prepared before training and kept in memory. Validation, test
    and prediction use draw 0, or with ensemble the mean of the outputs over all draws.

    own_hops is the way to compute distances to a component's own anchors: exact, or bounded
    (:mod:`subgnn.channels.distances`).

    border_anchors says which nodes around a component its neighborhood/border anchors are: drawn at random from its
    border, as in the paper; the heaviest of its 1-hop border, whatever hops is, with similarities of their own
    (:mod:`subgnn.kernels.borders`); or those with the largest lifts of its diffusion
    (:mod:`subgnn.channels.diffusion`). The last two are the same in all layers and draws.

    directed counts hops along the orientation of edges, from a component to an anchor, where the graph is directed.
    Components and borders are always those of its undirected form. weighted_walks and directed_walks draw the steps of
    walks by the weights of edges, and along their orientation. edge_length says how long an edge is for similarities by
    hops: one, which counts hops, or its weight, or one over its weight, both in units of their mean over the graph; a
    distance is then the length of a shortest path. Diffusion always uses weights.
    """

    hops: Count = 1
    patch_length: Size = 50
    walks: Size = 5
    walk_length: Size = 10
    beta: Probability = 0.65
    draws: Depth = 1
    ensemble: bool = False
    own_hops: Literal["exact", "bounded"] = "exact"
    directed: bool = False
    border_anchors: Literal["drawn", "heaviest", "lift"] = "drawn"
    weighted_walks: bool = False
    directed_walks: bool = False
    edge_length: Literal["one", "weight", "inverse weight"] = "one"


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Where node embeddings come from.

    source is ``random``, vectors of standard deviation scale; ``gin`` or ``graphsaint``, pretrained on link prediction
    ([pretrain]) and brought to that same deviation; ``gin-untrained``, a GIN at its initial weights, unscaled, which is
    what the paper's authors used; or a file, taken as it is. Trainable ones are fine-tuned.
    features says whether the graph's node features, standardised and through a learned linear map to dim numbers, are
    added to the embeddings (beside) or replace them (instead).
    """

    source: str = "random"
    dim: Width = 64
    scale: float = 0.1
    trainable: bool = True
    features: Literal["none", "beside", "instead"] = "none"


@dataclass(frozen=True, slots=True)
class PretrainSettings:
    """Node embeddings by link prediction (paper, appendix on pretraining); their width is embeddings.dim.

    seed is apart from the run's, so that runs of many seeds share one pretraining. An epoch is a number of steps;
    batch_size edges and as many non-edges make a step. fraction of the neighbours is GIN's, walk_length GraphSAINT's.
    weighted multiplies messages by the weights of edges, in units of their mean magnitude, where the graph has weights.
    """

    seed: Seed = 0
    hidden: Size = 128
    dropout: Probability = 0.4
    lr: float = 5e-3
    weight_decay: float = 5e-4
    batch_size: Size = 16384
    epochs: Count = 20
    steps: Count = 20
    fraction: Probability = 0.3
    walk_length: Size = 16
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The network (paper, section 4).

    initial says whether z^(0) takes part in the result, as in the paper; without it, a network on random embeddings has
    less to memorise. AGG_C and AGG_L lay subchannels and layers side by side. trainable_components gives every
    component of the training split a learned initial state in the neighborhood channel; the others start at z^(0).

    norm is that of z_S before the head. hidden_norm is that of the states h in every layer and subchannel, over the
    components of a batch (:class:`~subgnn.models.subgnn.layer.StateNorm`).

    baseline names a model that is fitted before training and whose scores the network corrects: its output is added to
    them, and starts at 0. The baseline's options are those of its own section. Epoch 0 is then the baseline itself.
    """

    layers: Annotated[int, Bounds(0, 1000)] = 1
    component_init: Literal["sum", "mean", "max"] = "sum"
    aggregation: Literal["sum", "mean", "max"] = "sum"
    output: Literal["property", "hidden", "both"] = "property"
    trainable_components: bool = False
    initial: bool = True
    readout: Literal["sum", "mean", "max", "attention"] = "sum"
    norm: Literal["none", "batch", "layer"] = "none"
    hidden_norm: Literal["none", "batch"] = "none"
    topology: bool = False
    lstm_layers: Depth = 1
    lstm_dropout: Probability = 0.0
    head: tuple[Size, Size] = (64, 32)
    dropout: Probability = 0.2
    baseline: str = "none"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How the network is fitted.

    schedule says how the rate changes: plateau multiplies it by plateau_factor, down to 5e-5 at the lowest, whenever
    the loss that plateau names has not fallen by a ten-thousandth for more than ten epochs. select_from is the first
    epoch that may be selected, and from which patience is counted. repeats is how often an epoch shows every training
    subgraph, to models that see another sample of its surroundings each time.

    class_weights are false, ``balanced`` (also true), or weights by class as in ``"fraud=20"``; focal is gamma of the
    focal loss (:mod:`subgnn.metrics.weighting`). select_by is the metric that epochs, candidates and trials are
    selected by: micro_f1, macro_f1, accuracy, auroc, auprc or recall@K; auto is micro-F1, for real values the loss.

    threshold is the aim by which the threshold of the rarer of two classes, or of each of several labels, is chosen
    (:mod:`subgnn.metrics.thresholds`): precision=0.9, recall=0.8, f1 or cost=fp:1,fn:20; none predicts the likelier
    class, and labels above one half. It is chosen on the validation split, or with threshold_folds on out-of-fold
    predictions of training and validation; a portfolio has out-of-fold predictions anyhow.

    members is how many networks are fitted, one after the other, to the same prepared subgraphs: each has its own
    initial weights, order of batches and dropout, and is selected on validation by itself. The prediction is the mean
    of their outputs.
    """

    epochs: Count = 200
    batch_size: Count = 64
    lr: float = 1e-3
    weight_decay: float = 0.0
    clip: float = 0.0
    patience: int = 0
    schedule: Literal["constant", "cosine", "plateau"] = "constant"
    class_weights: bool | str = False
    members: Depth = 1
    plateau: Literal["train loss", "val loss"] = "train loss"
    plateau_factor: Probability = 0.7
    select_from: int = 0
    repeats: Count = 1
    focal: Annotated[float, Bounds(0, 10)] = 0.0
    select_by: str = "auto"
    threshold: str = "none"
    threshold_folds: Annotated[int, Bounds(0, 100)] = 0


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """One candidate of a portfolio: a recipe by name or file, and overrides of its settings, as after --set.

    for_graphs_with names attributes of a graph (weights, direction, features): without one of them the candidate is not
    part of the portfolio. A candidate that names none always is.
    """

    name: str
    recipe: str
    set: tuple[str, ...] = ()
    for_graphs_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AutoSettings:
    """A portfolio of recipes, judged by cross-validation (method ``auto``).

    Candidates are judged on folds of the labelled subgraphs that are not test, repeats times with other folds; 0
    repeats small sets as often as it needs for about 1,000 predictions, four times at most. time is the budget in
    seconds. fit_on says which subgraphs are dealt into folds and fitted to at the end: those of train and val, or those
    of train alone, with val for choices and early stopping, as in published protocols.

    only names the candidates to try; without names, all of them are.
    """

    folds: Annotated[int, Bounds(2, 100)] = 5
    repeats: Annotated[int, Bounds(0, 100)] = 0
    time: Annotated[float, Bounds(1, LARGEST)] = 300.0
    fit_on: Literal["train and val", "train"] = "train and val"
    only: tuple[str, ...] = ()
    candidates: tuple[CandidateSettings, ...] = ()


@dataclass(frozen=True, slots=True)
class MethodSettings:
    """Settings of one method, or of a family of them: a subclass is declared beside its model, which names it.

    ``section`` is the name of its table in a recipe.
    """

    section: ClassVar[str]


Method = TypeVar("Method", bound=MethodSettings)


def method_settings(methods: Mapping[str, MethodSettings], kind: type[Method]) -> Method:
    """The settings of a kind among those of several methods; the defaults if they are not there."""
    return cast("Method", methods[kind.section]) if kind.section in methods else kind()


@dataclass(frozen=True, slots=True)
class Recipe:
    """All settings of a run, and the published number for it; ``methods`` are the settings of methods by section."""

    name: str = "unnamed"
    note: str = ""
    method: str = "subgnn"
    channels: tuple[ChannelSettings, ...] = ()
    prepare: PrepareSettings = field(default_factory=PrepareSettings)
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    auto: AutoSettings = field(default_factory=AutoSettings)
    methods: Mapping[str, MethodSettings] = field(default_factory=dict, metadata={"derived": True})
    published: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: type[Method]) -> Method:
        """The settings of a method."""
        return method_settings(self.methods, kind)

    def having(self, settings: MethodSettings) -> Recipe:
        """The recipe with other settings of a method."""
        return replace(self, methods={**self.methods, settings.section: settings})

    @property
    def is_portfolio(self) -> bool:
        """Whether it names candidates, which are trained by recipes of their own."""
        return self.method == PORTFOLIO

    def plain(self) -> dict[str, Any]:
        """All settings by section and key, as in a recipe file."""
        found = asdict(self)
        methods: dict[str, Any] = found.pop("methods")
        return found | methods


def recipe_key(recipe: Recipe) -> dict[str, Any]:
    """All settings of a recipe but its name, note and published number.

    Of the candidates of a portfolio, those for graphs with certain attributes do not enter: predictions of each are
    kept under a key of their own.
    """
    settings = {key: value for key, value in recipe.plain().items() if key not in ("name", "note", "published")}
    candidates = tuple(one for one in settings["auto"]["candidates"] if not one["for_graphs_with"])
    return settings | {"auto": settings["auto"] | {"candidates": candidates}}
