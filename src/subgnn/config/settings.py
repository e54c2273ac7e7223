"""Typed settings of a run: a dataclass for each section of a recipe, which :mod:`subgnn.config.files` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from subgnn.config.limits import Bounds, Count, Depth, Power, Probability, Seed, Size, Width

Method = Literal[
    "subgnn", "avg", "mn-gin", "mn-gat", "s2v-n", "s2v-s", "s2v-ns", "gc", "topology", "bag", "bag-1hop"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """One subchannel: what property, inside or at the border, from how many anchors.

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

    hops is k of the border; reduce how the distances of a component's nodes become one; sort_anchors puts the internal
    position anchors of each component in the order of their nearness. Patches are the nodes of
    triangular walks of patch_length nodes; walks x walk_length are walked over each. beta is the walks' parameter.

    draws is the number of independent draws of all anchors: epoch e trains on draw e mod draws, so that as many draws
    as epochs are anchors drawn anew every epoch. Each is prepared before training and kept in memory. Validation, test
    and prediction use draw 0, or with ensemble the mean of the outputs over all draws.

    own_hops says how distances to a component's own anchors are had: exact, or bounded: exact up to hop_cutoff as far
    as two searches of hop_edges edges each can tell, and beyond an upper bound, the least of a path through the
    component and a detour by one of the landmarks, the nodes with most neighbours.

    border_anchors says which nodes of its border a component's neighborhood/border anchors are: drawn at random, as in
    the paper, or the heaviest, with similarities of their own (:mod:`subgnn.kernels.borders`); giving and taking are
    the powers of degrees in their weights. Those are of the 1-hop border, whatever hops says, and the same in all
    layers and draws.

    directed counts hops along the orientation of edges, from a component to an anchor, where the graph is directed.
    Components, borders and walks are those of its undirected form in any case. Weights of edges are never looked at.
    """

    hops: Count = 1
    reduce: Literal["mean", "min"] = "mean"
    sort_anchors: bool = False
    patch_length: Size = 50
    walks: Size = 5
    walk_length: Size = 10
    beta: Probability = 0.65
    dtw_cost: Literal["absolute", "ratio"] = "ratio"
    dtw_normalize: bool = False
    draws: Depth = 1
    ensemble: bool = False
    own_hops: Literal["exact", "bounded"] = "exact"
    hop_cutoff: Count = 4
    hop_edges: Count = 1024
    landmarks: Size = 64
    directed: bool = False
    border_anchors: Literal["drawn", "heaviest"] = "drawn"
    giving: Power = 1.0
    taking: Power = 0.25


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Where node embeddings come from.

    source is ``random``, vectors of standard deviation scale; ``gin`` or ``graphsaint``, pretrained on link prediction
    ([pretrain]) and brought to that same deviation; or a file, taken as it is. Trainable ones are fine-tuned.
    features says whether the graph's node features, standardised and through a learned linear map to dim numbers, are
    added to the embeddings (beside) or stand in their place (instead).
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
    batch_size edges and as many non-edges make a step. patience is in epochs, 0 to never stop early. fraction of the
    neighbours and damping are GIN's; roots and walk_length GraphSAINT's. val_fraction of the edges are held out. Of the
    non-edges, the part matched joins nodes drawn by degree, as the ends of edges are; the rest joins uniform ones.
    """

    seed: Seed = 0
    hidden: Size = 128
    layers: Depth = 2
    dropout: Probability = 0.4
    lr: float = 5e-3
    weight_decay: float = 5e-4
    batch_size: Size = 16384
    epochs: Count = 20
    steps: Count = 20
    patience: int = 5
    val_fraction: Probability = 0.05
    matched: Probability = 0.25
    fraction: Probability = 0.3
    damping: float = 0.5
    roots: Size = 2000
    walk_length: Size = 16
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The network (paper, section 4).

    initial says whether z^(0) takes part in the result, as in the paper; without it, a network on random embeddings has
    less to learn by heart. channel_aggregation is AGG_C, layer_aggregation AGG_L. trainable_components gives every
    component of the training split a learned offset to z^(0); a component with other nodes has none.

    norm is that of z_S before the head. hidden_norm is that of the states h in every layer and subchannel, over the
    components of a batch (:class:`~subgnn.models.subgnn.layer.StateNorm`).

    baseline names one that is fitted before training and whose scores the network corrects: its output is added to
    them, and starts at 0. The baseline's options are those of [baseline]. Epoch 0 is then the baseline itself.
    """

    layers: Annotated[int, Bounds(0, 1000)] = 1
    component_init: Literal["sum", "mean", "max"] = "sum"
    aggregation: Literal["sum", "mean", "max"] = "sum"
    output: Literal["property", "hidden", "both"] = "property"
    channel_aggregation: Literal["concat", "sum", "mean"] = "concat"
    layer_aggregation: Literal["concat", "last", "sum", "mean"] = "concat"
    trainable_components: bool = False
    initial: bool = True
    readout: Literal["sum", "mean", "max", "attention"] = "sum"
    norm: Literal["none", "batch", "layer"] = "none"
    hidden_norm: Literal["none", "batch"] = "none"
    learned_similarity: bool = False
    topology: bool = False
    size_aware: bool = False
    lstm_layers: Depth = 1
    lstm_dropout: Probability = 0.0
    head: tuple[Size, Size] = (64, 32)
    dropout: Probability = 0.2
    baseline: Literal["none", "bag", "bag-1hop", "topology"] = "none"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How the network is fitted.

    cuda_graph says whether steps on a GPU are captured once and replayed; it changes no number beyond rounding.
    lr_finder replaces lr by what a range test finds before training.

    members is how many networks are fitted, one after the other, to the same prepared subgraphs: each has its own
    initial weights, order of batches and dropout, and is selected on validation by itself. The answer is the mean of
    their outputs.
    """

    epochs: Count = 200
    batch_size: Count = 64
    lr: float = 1e-3
    lr_finder: bool = False
    weight_decay: float = 0.0
    clip: float = 0.0
    patience: int = 0
    schedule: Literal["constant", "cosine"] = "constant"
    class_weights: bool = False
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    cuda_graph: bool = True
    members: Depth = 1


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """Options of the baselines; each reads those it has a use for, and its recipe names them.

    What is ``auto`` or 0 below is an open choice: every value is fitted and the best on validation is kept.

    tune_embeddings trains with frozen and with trainable embeddings, whatever embeddings.trainable says, and
    tune_settings with each of several lists of overrides, as after --set, of the head and its training (avg, mn, s2v,
    gc). classifier is what sees the statistics (topology). normalize scales the rows of a bag to length one, and
    inverse_penalty is C of its regression (bag). walks x walk_length are walked in each subgraph, degrees fall into
    bins, and doc2vec sees them for doc2vec_epochs (s2v). link_steps, link_batch, link_lr and link_edges are how meta
    nodes are embedded: steps, edges to predict and edges to send messages over in each (mn).
    """

    tune_embeddings: bool = False
    tune_settings: tuple[tuple[str, ...], ...] = ()
    classifier: Literal["auto", "boosting", "forest", "head"] = "auto"
    normalize: Literal["auto", "rows", "none"] = "auto"
    inverse_penalty: float = 0.0
    walks: Size = 20
    walk_length: Size = 20
    bins: Size = 20
    doc2vec_epochs: Count = 20
    link_steps: int = 300
    link_batch: Size = 4096
    link_lr: float = 1e-2
    link_edges: Count = 200_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """All settings of a run, and what was published for it."""

    name: str = "unnamed"
    note: str = ""
    method: Method = "subgnn"
    channels: tuple[ChannelSettings, ...] = ()
    prepare: PrepareSettings = field(default_factory=PrepareSettings)
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    baseline: BaselineSettings = field(default_factory=BaselineSettings)
    published: dict[str, Any] = field(default_factory=dict)


LATER = {
    "prepare": ("border_anchors", "giving", "taking"),
    "model": ("hidden_norm",),
    "training": ("members",),
    "baseline": ("tune_settings",),
}
"""Settings that were added after keys had been made of the others, by section."""


def lasting(section: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a section that a key of what is kept is made of.

    A setting that was added later counts only where it is not at its default, so that what was kept before is found.
    """
    defaults = asdict(Recipe())
    later = {name: defaults[section][name] for name in LATER.get(section, ())}
    return {name: value for name, value in settings.items() if name not in later or value != later[name]}


def lasting_settings(recipe: Recipe) -> dict[str, Any]:
    """All of a recipe that a key of what is kept is made of: neither its name nor words about it."""
    settings = {key: value for key, value in asdict(recipe).items() if key not in ("name", "note", "published")}
    settings["channels"] = tuple(
        {name: value for name, value in entry.items() if value or name != "similarity"}
        for entry in settings["channels"]
    )
    return settings | {section: lasting(section, settings[section]) for section in LATER}
