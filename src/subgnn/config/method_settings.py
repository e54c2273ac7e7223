"""Settings of the methods beside SubGNN: baselines, message passing, WLKS, S2N, vectors without labels, portfolios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from subgnn.config.numbers import LARGEST, Bounds, Count, Damping, Probability, Size


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """Options of the baselines; each reads those it uses, and its recipe names them.

    ``auto`` of classifier, normalize and balance, and 0 of inverse_penalty and damping, try every value and select the
    best on validation.

    tune_embeddings trains with frozen and with trainable embeddings, whatever embeddings.trainable says, and
    tune_settings with each of several lists of overrides, as after --set, of the head and its training (avg, mn, s2v,
    gc). classifier is fitted to the statistics (topology). normalize scales the rows of a bag to length one and balance
    lets all classes count the same (bag); inverse_penalty is C of the regression (bag, diffusion). views, kernel and
    loss are those of a kernel machine (``kernel_machines/kernel_machine.py``); damping is the probability that the walk
    of a subgraph goes on, and diffusion how it is computed: exact, at all nodes, or push, which follows at most
    push_edges edges and keeps the push_nodes nodes with the largest lifts; auto is exact up to 2^28 pairs of a subgraph
    and a node (diffusion).

    weighted and directed say whether what counts edges or spreads over them uses their weights and their direction,
    where the graph has these: the bag spread one hop, and the statistics, which have further columns then (bag-1hop,
    topology and these views); messages (gc, weights alone). Diffusions always use weights; along and against edges they
    are views of their own.
    """

    tune_embeddings: bool = False
    tune_settings: tuple[tuple[str, ...], ...] = ()
    classifier: Literal["auto", "boosting", "forest", "head"] = "auto"
    normalize: Literal["auto", "rows", "none"] = "auto"
    balance: Literal["auto", "classes", "none"] = "auto"
    inverse_penalty: float = 0.0
    views: tuple[str, ...] = ("lift",)
    kernel: Literal["linear", "gaussian"] = "gaussian"
    loss: Literal["squared", "logistic"] = "squared"
    damping: Damping = 0.6
    diffusion: Literal["auto", "exact", "push"] = "auto"
    push_edges: Count = 1_000_000
    push_nodes: Size = 2_000
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
    """WLKS (:mod:`subgnn.models.peers.wlks`).

    Of rounds, mix and inverse_penalty every listed value is tried, and validation selects. rounds is the number of
    rounds of colour refinement, cumulative takes all rounds up to it. normalize scales histograms to length one
    (``auto``: both are tried). mix is the share of the whole graph's kernel. inverse_penalty is C of the support vector
    machines.
    """

    rounds: tuple[Annotated[int, Bounds(1, 100)], ...] = (1, 2)
    cumulative: bool = False
    normalize: Literal["auto", "rows", "none"] = "auto"
    mix: tuple[Probability, ...] = (0.99, 0.5, 0.01)
    inverse_penalty: tuple[Annotated[float, Bounds(1e-9, 10**9)], ...] = (0.08, 0.64, 5.12)


@dataclass(frozen=True, slots=True)
class S2NSettings:
    """S2N (:mod:`subgnn.models.peers.s2n`); model.layers is the number of layers on the graph of subgraphs.

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
    """Vectors that no label is needed for (:mod:`subgnn.models.kernel_machines.unsupervised`).

    width is the length of a vector, 18 numbers of which are statistics.
    """

    width: Annotated[int, Bounds(19, 65_536)] = 256


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
