"""The interfaces of channels and similarities, and the anchors and numbers that they exchange.

A channel is a property of subgraphs that is seen from anchors (paper, section 4.2). A :class:`Channel` states how
anchors are sampled and compared, whether an anchor's vector is a node's embedding or comes from walks over a patch, and
what the network reads off. Channels and similarities are entered in the tables of :mod:`subgnn.channels.table`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.parallel.progress import OnProgress, ignore, pieces
from subgnn.ragged import Ragged
from subgnn.rng import stream_key

T = TypeVar("T")
Take = Callable[[str, Any], NDArray[Any]]
"""Maps a name and a type to a stored array; raises :class:`LookupError` or :class:`TypeError` if there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeAnchors:
    """Single nodes (n_A,), shared by all subgraphs; their vectors are embeddings."""

    nodes: NDArray[np.int32]

    @property
    def touched(self) -> NDArray[np.int32]:
        """Nodes whose embeddings are needed."""
        return self.nodes

    @classmethod
    def from_arrays(cls, take: Take, num_anchors: int) -> Self:
        """Anchors from their :func:`named_arrays`; raises :class:`ValueError` if they do not fit."""
        nodes = take("nodes", np.int32)
        if len(nodes) != num_anchors:
            raise ValueError(f"{len(nodes)} anchors, not {num_anchors}")
        return cls(nodes)


@dataclass(frozen=True, slots=True, eq=False)
class PatchAnchors:
    """Connected node sets, shared by all subgraphs, sorted; and walks over them, those of a patch together."""

    patches: Ragged
    walks: Ragged

    @property
    def touched(self) -> NDArray[np.int32]:
        return self.walks.values

    @classmethod
    def from_arrays(cls, take: Take, num_anchors: int) -> Self:
        def rows(name: str) -> Ragged:
            found = Ragged(take(f"{name}.values", np.int32), take(f"{name}.offsets", np.int64))
            found.validate(name)
            return found

        patches, walks = rows("patches"), rows("walks")
        if len(patches) != num_anchors or not len(walks) or len(walks) % num_anchors:
            raise ValueError(f"{len(patches)} patches, {len(walks)} walks")
        return cls(patches, walks)


SharedAnchors = NodeAnchors | PatchAnchors


def moved_anchors(
    anchors: SharedAnchors, place: Callable[[NDArray[Any]], NDArray[np.int64]], gone: list[int]
) -> SharedAnchors:
    """Anchors in another graph, where ``place`` finds nodes; the next one there stands in for one that is gone.

    Those that are gone or have lost nodes are added to the number ``gone``.
    """
    if isinstance(anchors, NodeAnchors):
        found = place(anchors.nodes)
        gone[0] += int((found < 0).sum())
        return NodeAnchors(found[_next_there(found >= 0)].astype(np.int32))

    def rows(given: Ragged) -> Ragged:
        found = place(given.values)
        kept = found >= 0
        return Ragged.from_lengths(found[kept].astype(np.int32), np.bincount(given.row_ids[kept], minlength=len(given)))

    patches, walks = rows(anchors.patches), rows(anchors.walks)
    gone[0] += int((patches.lengths < anchors.patches.lengths).sum())
    each = len(walks) // len(patches)
    chosen = _next_there((patches.lengths > 0) & (walks.lengths.reshape(-1, each) > 0).all(axis=1))
    taken = (chosen[:, None] * each + np.arange(each)).reshape(-1)
    return PatchAnchors(Ragged.from_rows([np.sort(patches[i]) for i in chosen]), walks.take(taken))


def _next_there(there: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each place itself, or the next one that is there, round and round; an error if none is."""
    known = np.flatnonzero(there)
    if not len(known):
        raise DataError("all anchors of a channel are gone", where="--graph", hint="train again on this graph")
    return known[np.searchsorted(known, np.arange(len(there))) % len(known)]


@dataclass(frozen=True, slots=True, eq=False)
class OwnAnchors:
    """Single nodes (C, n_A), drawn for each component that is ``present`` (C,); with weights from 0 to 1, perhaps."""

    nodes: NDArray[np.int32]
    present: NDArray[np.bool_]
    weights: NDArray[np.float32] | None = None

    @property
    def touched(self) -> NDArray[np.int32]:
        return self.nodes[self.present].reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What one channel is sampled and measured with; with ``cache``, searches across large graphs are kept."""

    graph: Graph
    settings: PrepareSettings
    channel: ChannelSettings
    layers: int
    seed: int
    on_progress: OnProgress = ignore
    cache: bool = False

    def key(self, name: str) -> int:
        return stream_key(self.seed, name)

    def pieces(self, count: int, *, step: int, what: str, most: int | None = None) -> Iterator[slice]:
        """Cut ``range(count)`` into slices and report progress (:func:`~subgnn.parallel.progress.pieces`)."""
        return pieces(count, step=step, most=most, what=what, on_progress=self.on_progress)

    def own_anchors(self, drawn: NDArray[np.int32], present: NDArray[np.bool_] | None = None) -> list[OwnAnchors]:
        """Draws (C, layers * n_A) by layer; ``present`` (C,) says which components have any, by default all."""
        present = np.ones(len(drawn), np.bool_) if present is None else present
        by_layer = drawn.reshape(len(drawn), self.layers, self.channel.num_anchors)
        return [OwnAnchors(np.ascontiguousarray(by_layer[:, layer]), present) for layer in range(self.layers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One side of a channel.

    Args:
        similarity: the name of the similarity, or a function that chooses it by the settings; an entry of
            ``[[channels]]`` may name another.
        anchors: their type. All subgraphs share them, unless they are :class:`OwnAnchors`.
        sample: draws anchors, by layer. Of shared ones, it is called with the work, and a function of the graph and the
            seed. Of own ones, it is called with all subgraphs and their components, too: a function of the seed and of
            the node set that is drawn from, so that neither the batch nor the order of lines matters.
        output: what the network reads off: one number an anchor, or the state h.
    """

    similarity: str | Callable[[PrepareSettings], str]
    anchors: type[NodeAnchors] | type[PatchAnchors] | type[OwnAnchors]
    sample: Callable[..., list[Any]]
    output: Literal["anchors", "state"] = "anchors"

    @property
    def shared(self) -> bool:
        return self.anchors is not OwnAnchors

    @property
    def patches(self) -> bool:
        return self.anchors is PatchAnchors


Compare = Callable[[Work, Ragged, list[Any]], list[NDArray[np.float32]]]
"""Maps work, components and the anchors of every layer to similarities gamma (C, n_A) in [0, 1], by layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """A comparison of components with anchors, for each type of anchors: numbers in [0, 1].

    If each anchor costs a search across the graph (``searches``), memory for one is checked before the work.
    """

    measure: Mapping[type, Compare]
    searches: bool = False


def each_array(function: Callable[..., Any], value: T, *others: Any) -> T:
    """Apply a function to every array in nested dataclasses and lists; if several are given, to arrays in parallel."""
    values: tuple[Any, ...] = (value, *others)
    if hasattr(value, "shape"):
        return cast(T, function(*values))
    if isinstance(value, list):
        return cast(T, [each_array(function, *items) for items in zip(*values, strict=True)])
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: each_array(function, *(getattr(one, f.name) for one in values)) for f in fields(value)}
        return cast(T, type(value)(**parts))
    return value


def named_arrays(value: Any, name: str) -> dict[str, NDArray[Any]]:
    """Every array in nested dataclasses, lists and dictionaries by its path, such as ``name.0.patches.values``."""
    if isinstance(value, np.ndarray):
        return {name: value}
    items: Any = ((f.name, getattr(value, f.name)) for f in fields(value)) if is_dataclass(value) else ()
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else items
    return {path: array for key, part in items for path, array in named_arrays(part, f"{name}.{key}").items()}
