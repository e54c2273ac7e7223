"""Typed settings of a run: a dataclass for each section of a recipe, with the bounds of every number.

:mod:`subgnn.config.files` reads and checks them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, get_args, get_origin


@dataclass(frozen=True, slots=True)
class Bounds:
    """Finite numbers from low to high, both of them included.

    Example:
        >>> 1.0 in Bounds(0, 1), 1.5 in Bounds(0, 1), math.inf in Bounds()
        (True, False, False)
        >>> str(Bounds(0, 1)), str(Bounds(1, 10**6)), str(Bounds(0.5))
        ('from 0 to 1', 'from 1 to 1,000,000', 'from 0.5')
    """

    low: float = 0
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and value < math.inf

    def __str__(self) -> str:
        return f"from {self.low:,}" + (f" to {self.high:,}" if self.high < math.inf else "")


LARGEST = 10**9
"""The largest whole number of a setting: compiled code counts in 32 bits."""

Count = Annotated[int, Bounds(1, LARGEST)]
"""A number of things, at least one."""

Size = Annotated[int, Bounds(1, 10**6)]
"""A length of arrays in memory: a width, a number of anchors, a length of walks."""

Width = Annotated[int, Bounds(1, 65_536)]
"""The width of a node embedding."""

Depth = Annotated[int, Bounds(1, 1000)]
"""A number of networks, layers or draws, each of which has weights or anchors."""

Seed = Annotated[int, Bounds(0, 2**63 - 1)]
"""A seed of random numbers."""

Probability = Annotated[float, Bounds(0, 1)]
"""A probability or a fraction."""

Damping = Annotated[float, Bounds(0, 0.99)]
"""The probability that a random walk goes on."""

Power = Annotated[float, Bounds(0, 4)]
"""A power of degrees: the product of two such powers of any degree is finite and above 0."""


def with_bounds(kind: Any) -> tuple[Any, Bounds | None]:
    """A type without its bounds, and the bounds; by default numbers are from 0 and fit into 32 bits.

    Example:
        >>> with_bounds(Probability), with_bounds(float), with_bounds(str)
        ((<class 'float'>, Bounds(low=0, high=1)), (<class 'float'>, Bounds(low=0, high=1e+30)), (<class 'str'>, None))
    """
    if get_origin(kind) is Annotated:
        plain, bounds = get_args(kind)
        return plain, bounds
    return kind, {int: Bounds(0, LARGEST), float: Bounds(0, 1e30)}.get(kind)


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

    hops is k of the border; reduce how the distances of a component's nodes become one; sort_anchors puts the internal
    position anchors of each component in the order of their similarity. Patches are the nodes of triangular walks of
    patch_length nodes; over each, walks x walk_length are walked. beta is the parameter of the walks.

    draws is the number of independent draws of all anchors: epoch e trains on draw e mod draws, so that as many draws
    as epochs are anchors drawn anew every epoch. Each is prepared before training and kept in memory. Validation, test
    and prediction use draw 0, or with ensemble the mean of the outputs over all draws.

    own_hops is the way to compute distances to a component's own anchors: exact, or bounded. Bounded ones are exact up
    to hop_cutoff as far as two searches of hop_edges edges each reach, and beyond that an upper bound: the shorter of a
    path through the component and a detour by one of the landmarks, the nodes with most neighbours.

    border_anchors says which nodes around a component its neighborhood/border anchors are: drawn at random from its
    border, as in the paper; the heaviest of its 1-hop border, whatever hops is, with similarities of their own
    (:mod:`subgnn.kernels.borders`; giving and taking are the powers of degrees in their weights); or those with the
    largest lifts of its diffusion (:mod:`subgnn.channels.diffusion`). The last two are the same in all layers and
    draws. damping is the probability that the random walk of a diffusion goes on.

    directed counts hops along the orientation of edges, from a component to an anchor, where the graph is directed.
    Components and borders are always those of its undirected form. weighted_walks and directed_walks draw the steps of
    walks by the weights of edges, and along their orientation. edge_length says how long an edge is for similarities by
    hops: one, which counts hops, or its weight, or one over its weight, both in units of their mean over the graph; a
    distance is then the length of a shortest path. Diffusion always uses weights.
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
    border_anchors: Literal["drawn", "heaviest", "lift"] = "drawn"
    giving: Power = 1.0
    taking: Power = 0.25
    damping: Damping = 0.6
    weighted_walks: bool = False
    directed_walks: bool = False
    edge_length: Literal["one", "weight", "inverse weight"] = "one"


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Where node embeddings come from.

    source is ``random``, vectors of standard deviation scale; ``gin`` or ``graphsaint``, pretrained on link prediction
    ([pretrain]) and brought to that same deviation; or a file, taken as it is. Trainable ones are fine-tuned.
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
    batch_size edges and as many non-edges make a step. patience is in epochs, 0 to never stop early. fraction of the
    neighbours and damping are GIN's; roots and walk_length GraphSAINT's. val_fraction of the edges are held out. Of the
    non-edges, the part matched joins nodes drawn by degree, as the ends of edges are; the rest joins uniform ones.
    weighted multiplies messages by the weights of edges, in units of their mean magnitude, where the graph has weights.
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
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The network (paper, section 4).

    initial says whether z^(0) takes part in the result, as in the paper; without it, a network on random embeddings has
    less to memorise. channel_aggregation is AGG_C, layer_aggregation AGG_L. trainable_components gives every
    component of the training split a learned offset to z^(0); other components have none.

    norm is that of z_S before the head. hidden_norm is that of the states h in every layer and subchannel, over the
    components of a batch (:class:`~subgnn.models.subgnn.layer.StateNorm`).

    baseline names a model that is fitted before training and whose scores the network corrects: its output is added to
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
    baseline: str = "none"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How the network is fitted.

    cuda_graph says whether steps on a GPU are captured once and replayed; it changes no number beyond rounding.
    lr_finder replaces lr by the rate that a range test finds before training. encode_every encodes the patches of the
    structure channel in every so many steps, from the first of an epoch on; steps between use the last vectors.

    schedule says how the rate changes: plateau multiplies it by plateau_factor, down to 5e-5 at the lowest, whenever
    the loss that plateau names has not fallen by a ten-thousandth for more than ten epochs. select_from is the first
    epoch that may be selected, and from which patience is counted. repeats is how often an epoch shows every training
    subgraph, to models that see another sample of its surroundings each time.

    class_weights are false, ``balanced`` (also true), or weights by class as in ``"fraud=20"``; focal is gamma of the
    focal loss (:mod:`subgnn.models.weighting`). select_by is the metric that epochs, candidates and trials are
    selected by: micro_f1, macro_f1, accuracy, auroc, auprc or recall@K; auto is micro-F1, for real values the loss.

    threshold is the aim by which the threshold of the rarer of two classes, or of each of several labels, is chosen
    (:mod:`subgnn.models.thresholds`): precision=0.9, recall=0.8, f1 or cost=fp:1,fn:20; none predicts the likelier
    class, and labels above one half. It is chosen on the validation split, or with threshold_folds on out-of-fold
    predictions of training and validation; a portfolio has out-of-fold predictions anyhow.

    members is how many networks are fitted, one after the other, to the same prepared subgraphs: each has its own
    initial weights, order of batches and dropout, and is selected on validation by itself. The prediction is the mean
    of their outputs.
    """

    epochs: Count = 200
    batch_size: Count = 64
    lr: float = 1e-3
    lr_finder: bool = False
    weight_decay: float = 0.0
    clip: float = 0.0
    patience: int = 0
    schedule: Literal["constant", "cosine", "plateau"] = "constant"
    class_weights: bool | str = False
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    cuda_graph: bool = True
    members: Depth = 1
    plateau: Literal["train loss", "val loss"] = "train loss"
    plateau_factor: Probability = 0.7
    select_from: int = 0
    repeats: Count = 1
    focal: Annotated[float, Bounds(0, 10)] = 0.0
    select_by: str = "auto"
    threshold: str = "none"
    threshold_folds: Annotated[int, Bounds(0, 100)] = 0
    encode_every: Count = 1


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """Options of the baselines; each reads those it uses, and its recipe names them.

    ``auto`` of classifier and normalize, and 0 of inverse_penalty and damping, try every value and select the best on
    validation.

    tune_embeddings trains with frozen and with trainable embeddings, whatever embeddings.trainable says, and
    tune_settings with each of several lists of overrides, as after --set, of the head and its training (avg, mn,
    s2v, gc). classifier is fitted to the statistics (topology). normalize scales the rows of a bag to length one
    (bag), and inverse_penalty is C of the regression (bag, diffusion). views, kernel and loss are those of a kernel
    machine (:mod:`subgnn.models.kernel_machine`); damping is the probability that the walk of a subgraph goes on,
    and diffusion how it is computed: exact, at all nodes, or push, which follows at most push_edges edges and keeps
    the push_nodes nodes with the largest lifts; auto is exact up to 2^28 pairs of a subgraph and a node
    (diffusion). walks x walk_length are walked in each subgraph, degrees fall into bins, and doc2vec sees them for
    doc2vec_epochs (s2v). link_steps, link_batch, link_lr and link_edges are how meta nodes are embedded: steps,
    edges to predict and edges to send messages over in each (mn).

    weighted and directed say whether what counts edges or spreads over them uses their weights and their direction,
    where the graph has these: the bag spread one hop, and the statistics, which have further columns then (bag-1hop,
    topology and these views); messages (gc, weights alone). Diffusions always use weights; along and against edges they
    are views of their own.
    """

    tune_embeddings: bool = False
    tune_settings: tuple[tuple[str, ...], ...] = ()
    classifier: Literal["auto", "boosting", "forest", "head"] = "auto"
    normalize: Literal["auto", "rows", "none"] = "auto"
    inverse_penalty: float = 0.0
    views: tuple[str, ...] = ("lift",)
    kernel: Literal["linear", "gaussian"] = "gaussian"
    loss: Literal["squared", "logistic"] = "squared"
    damping: Damping = 0.6
    diffusion: Literal["auto", "exact", "push"] = "auto"
    push_edges: Count = 1_000_000
    push_nodes: Size = 2_000
    walks: Size = 20
    walk_length: Size = 20
    bins: Size = 20
    doc2vec_epochs: Count = 20
    link_steps: int = 300
    link_batch: Size = 4096
    link_lr: float = 1e-2
    link_edges: Count = 200_000
    weighted: bool = False
    directed: bool = False


@dataclass(frozen=True, slots=True)
class MessagePassingSettings:
    """Message passing over the whole graph (glass, ssnp); the width is embeddings.dim, layers and dropout of [model].

    inputs says what nodes start from: their embeddings, or one learned vector for all. adjacency is its normalisation:
    D^-1 A, A, or D^-1/2 A D^-1/2. pool is the readout over a set of nodes; size is the sum over the root of its size.

    ratio is the weight of a node's own set of weights, of members or of others, beside the other set (glass).
    training_labels says which nodes are labelled in a training step: those of all subgraphs of the batch, as published,
    or those of each subgraph by itself. labelled_together is the number of subgraphs labelled together in prediction;
    with more than one, as published, a prediction depends on the others (glass).

    typed gives messages a learned scale for each type of edges, where edges have types; without it, or without types,
    an edge is an edge.

    walks of walk_length steps from each member find the border nodes. views is the number of fixed draws of walks that
    training takes turns over; 0 walks anew in every step (ssnp).

    weighted has the weights of edges in the adjacency, D being the sums of their magnitudes, and draws the steps of
    walks by weight, where the graph has weights.
    """

    inputs: Literal["embeddings", "constant"] = "embeddings"
    adjacency: Literal["mean", "sum", "symmetric"] = "mean"
    pool: Literal["sum", "mean", "max", "size"] = "size"
    ratio: Annotated[float, Bounds(0.5, 1)] = 0.8
    training_labels: Literal["batch", "subgraph"] = "batch"
    labelled_together: Count = 1
    walks: Size = 1
    walk_length: Size = 5
    views: int = 0
    weighted: bool = False
    typed: bool = False


@dataclass(frozen=True, slots=True)
class WLKSSettings:
    """WLKS (:mod:`subgnn.models.wlks`).

    Of rounds, mix and inverse_penalty every listed value is tried, and validation selects. rounds is the number of
    rounds of colour refinement, cumulative takes all rounds up to it. normalize scales histograms to length one
    (``auto``: both are tried). mix is the share of the whole graph's kernel, hops the radius of the balls in which
    subgraphs are refined for the other. embedding_weight is the weight of a third kernel, of summed node embeddings; of
    it, too, every listed value is tried. inverse_penalty is C of the support vector machines.
    """

    rounds: tuple[Annotated[int, Bounds(1, 100)], ...] = (1, 2)
    cumulative: bool = False
    normalize: Literal["auto", "rows", "none"] = "auto"
    mix: tuple[Probability, ...] = (0.99, 0.5, 0.01)
    hops: Annotated[int, Bounds(0, 100)] = 0
    embedding_weight: tuple[Annotated[float, Bounds(0, 10**9)], ...] = (0.0,)
    inverse_penalty: tuple[Annotated[float, Bounds(1e-9, 10**9)], ...] = (0.08, 0.64, 5.12)


@dataclass(frozen=True, slots=True)
class S2NSettings:
    """S2N (:mod:`subgnn.models.s2n`); model.layers is the number of layers on the graph of subgraphs.

    convolution is that of all layers. threshold t and span d make standardised weights w of edges between subgraphs to
    (min(w, t + d) - t) / d; those at or below 0 are dropped. sub_layers is the number of layers inside subgraphs before
    their nodes are summed: none is S2N+0, more S2N+A. edge_dropout leaves out edges of the graph of subgraphs in
    training. batch_norm and skip (a linear layer beside each convolution) are of the layers on that graph. alpha, theta
    and shared are those of GCNII, sub_alpha, sub_theta and sub_shared the same inside subgraphs, where sub_normalized
    says whether a node takes the mean of its neighbours or their sum. weighted sums nodes by the root of their share of
    the degrees. constant, if above 0, replaces embeddings by that number. test_graph says
    whether a subgraph that is predicted is joined to the training subgraphs alone, or with all others of its batch.
    """

    convolution: Literal["gcn", "gcnii"] = "gcn"
    threshold: float = 2.0
    span: Annotated[float, Bounds(1e-3, 1000)] = 1.0
    sub_layers: Annotated[int, Bounds(0, 100)] = 0
    edge_dropout: Probability = 0.3
    batch_norm: bool = False
    skip: bool = False
    alpha: Probability = 0.5
    theta: float = 0.5
    shared: bool = True
    sub_alpha: Probability = 0.5
    sub_theta: float = 0.5
    sub_shared: bool = True
    sub_normalized: bool = True
    weighted: bool = False
    constant: float = 0.0
    test_graph: Literal["alone", "batch"] = "alone"


@dataclass(frozen=True, slots=True)
class SubgraphVectorSettings:
    """Vectors that no label is needed for (:mod:`subgnn.models.unsupervised`).

    width is the length of a vector, 18 numbers of which are statistics. references is the number of training subgraphs
    that others are compared with; of more, as many are drawn. objective says whether the principal components are the
    vectors, or a map of them that is trained to tell subgraphs apart. That takes views of each reference, in which
    nodes are dropped with probability drop and grow times as many nodes of the border as it has nodes are added;
    temperature divides the cosines of views, and steps, batch_size and lr are those of the training.
    """

    width: Annotated[int, Bounds(19, 65_536)] = 256
    references: Size = 2048
    objective: Literal["variance", "contrastive"] = "variance"
    views: Annotated[int, Bounds(2, 1000)] = 4
    drop: Probability = 0.3
    grow: Probability = 0.3
    temperature: Annotated[float, Bounds(1e-3, 1000)] = 0.2
    steps: Count = 100
    batch_size: Annotated[int, Bounds(2, 10**6)] = 256
    lr: float = 1e-3


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
class Recipe:
    """All settings of a run, and the published number for it."""

    name: str = "unnamed"
    note: str = ""
    method: str = "subgnn"
    channels: tuple[ChannelSettings, ...] = ()
    prepare: PrepareSettings = field(default_factory=PrepareSettings)
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    baseline: BaselineSettings = field(default_factory=BaselineSettings)
    auto: AutoSettings = field(default_factory=AutoSettings)
    message_passing: MessagePassingSettings = field(default_factory=MessagePassingSettings)
    wlks: WLKSSettings = field(default_factory=WLKSSettings)
    s2n: S2NSettings = field(default_factory=S2NSettings)
    vectors: SubgraphVectorSettings = field(default_factory=SubgraphVectorSettings)
    published: dict[str, Any] = field(default_factory=dict)


ADDED_LATER = {
    "prepare": (
        "border_anchors",
        "giving",
        "taking",
        "damping",
        "weighted_walks",
        "directed_walks",
        "edge_length",
    ),
    "pretrain": ("weighted",),
    "model": ("hidden_norm",),
    "training": (
        "members",
        "plateau",
        "plateau_factor",
        "select_from",
        "repeats",
        "focal",
        "select_by",
        "threshold",
        "threshold_folds",
        "encode_every",
    ),
    "baseline": (
        "tune_settings",
        "views",
        "kernel",
        "loss",
        "damping",
        "diffusion",
        "push_edges",
        "push_nodes",
        "weighted",
        "directed",
    ),
    "s2n": ("sub_normalized",),
    "message_passing": ("typed", "weighted"),
}
"""Settings, by section, that did not exist when cache keys were first made of the others."""

SECTIONS_ADDED_LATER = (
    "auto",
    "message_passing",
    "wlks",
    "s2n",
    "vectors",
)
"""Sections that did not exist then."""


def section_key(section: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a section that enter a cache key.

    A setting that was added later enters only if it is not at its default, so that earlier results are found.
    """
    defaults = asdict(Recipe())
    later = {name: defaults[section][name] for name in ADDED_LATER.get(section, ())}
    return {name: value for name, value in settings.items() if name not in later or value != later[name]}


def channel_key(channel: ChannelSettings) -> dict[str, Any]:
    """Settings of a channel that enter a cache key; its similarity, which was added later, only if it is set."""
    return {name: value for name, value in asdict(channel).items() if value or name != "similarity"}


def recipe_key(recipe: Recipe) -> dict[str, Any]:
    """Settings of a recipe that enter a cache key: all but its name, note and published number.

    A section that was added later enters only if it is not at its defaults. Of the candidates of a portfolio, those for
    graphs with certain attributes do not enter: predictions of each are kept under a key of their own.
    """
    plain = Recipe()
    unchanged = (name for name in SECTIONS_ADDED_LATER if getattr(recipe, name) == getattr(plain, name))
    left_out = ("name", "note", "published", *unchanged)
    settings = {key: value for key, value in asdict(recipe).items() if key not in left_out}
    if "auto" in settings:
        candidates = [one for one in settings["auto"]["candidates"] if not one.pop("for_graphs_with")]
        settings["auto"] = settings["auto"] | {"candidates": tuple(candidates)}
    settings["channels"] = tuple(channel_key(channel) for channel in recipe.channels)
    return settings | {
        section: section_key(section, settings[section]) for section in ADDED_LATER if section in settings
    }
