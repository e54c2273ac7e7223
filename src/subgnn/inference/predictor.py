"""Predictions of a trained model for any subgraphs of its graph, in this process or by the workers of an engine.

Workers open the run once and keep it. Subgraphs are divided into pieces that are multiples of a batch, so that outputs
are those of one process, byte for byte. The workers get the checkpoint and the graph from here: they need no file of
the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from subgnn.data.graph import Graph
from subgnn.data.own_times import as_rows, times_of
from subgnn.data.place_graph import place_graph
from subgnn.data.subgraphs import SubgraphSet, label_separator
from subgnn.embeddings.sources import Tables, load_run_vectors
from subgnn.errors import UserError
from subgnn.models.auto import FittedAuto
from subgnn.models.checkpoint import check_checkpoint, load_checkpoint
from subgnn.models.interface import BATCH, CACHED_NUMBERS, FittedChannelModel, FittedModel, LoadContext
from subgnn.models.novelty import Comparison
from subgnn.models.registry import model_of, open_checkpoint
from subgnn.models.spec import Checkpoint
from subgnn.parallel.engine import Engine, Failure, Shared
from subgnn.ragged import Ragged
from subgnn.task import Thresholds, task_of

if TYPE_CHECKING:
    import torch

    from subgnn.models.subgnn import SubGNN
    from subgnn.models.subgnn.fitted import MeasuredForNetworks

_MEAN_OF = 256  # subgraphs, at most
_PIECES_A_SLOT = 4  # so that one slow piece delays the end little

What = Literal["outputs", "vectors"]
Subgraphs = SubgraphSet | Ragged | Sequence[Sequence[int | str]]


class Predictor:
    """A checkpoint and the graph it was trained on.

    An output is a function of a subgraph's nodes and the run alone, whether or not the subgraph was in training.

    Args:
        checkpoint: of a run, or the file that holds it.
        graph: the base graph, directed or in its undirected form; it must be the one the run was trained on.
        tables: the node embeddings the run started from (N, d), by hash; by default they are read from its folder.
        cached_numbers: cache tables of node vectors with up to this many numbers; of larger ones, only rows in use.
        cache: store what is computed for the training subgraphs in the cache folder.
        where, again: for errors, where the checkpoint is from and what to do if it does not fit.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | Path,
        graph: Graph,
        *,
        device: torch.device | str = "cpu",
        tables: Mapping[str, NDArray[np.float32]] | None = None,
        cached_numbers: int = CACHED_NUMBERS,
        cache: bool = False,
        where: str = "checkpoint",
        again: str = "train again",
    ) -> None:
        run = checkpoint.parent if isinstance(checkpoint, Path) else Path()
        self.checkpoint = load_checkpoint(checkpoint) if isinstance(checkpoint, Path) else checkpoint
        self.spec = self.checkpoint.spec
        # Every prediction needs the hash; computing it reads all edges.
        self.graph = graph = _hashed(graph.undirected())
        place = str(checkpoint) if isinstance(checkpoint, Path) else where
        self.model = check_checkpoint(self.checkpoint, graph, where=place, again=again)
        self.tables = load_run_vectors(run, self.checkpoint.tables()) if tables is None else tables
        context = LoadContext(device, self.tables, cached_numbers=cached_numbers, cache=cache)
        self.fitted = open_checkpoint(self.checkpoint, graph, context)
        self._comparison: Comparison | None = None
        # The step that times are rounded down to, if subgraphs are measured as of their own times.
        self.as_of_step: float | None = None

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """Logits (n, outputs); standardised values for regression."""
        if self.spec.task == "unlabelled":
            hint = "use its vectors (embed), or train the recipe on labelled subgraphs"
            raise UserError("the model was fitted without labels, so it cannot predict any", where="predict", hint=hint)
        return self.fitted.outputs(subgraphs)

    def rows(self, subgraphs: Subgraphs) -> Ragged:
        """Subgraphs as rows of node ids, nodes by id or by name; with times, as of these if the run measures so."""
        if isinstance(subgraphs, SubgraphSet):
            if self.as_of_step is None or times_of(subgraphs.nodes) is not None:
                return subgraphs.nodes
            return as_rows(subgraphs.nodes, subgraphs.times, self.as_of_step)
        if isinstance(subgraphs, Ragged):
            return subgraphs
        graph = self.graph
        lists = [[graph.row_of(node) if isinstance(node, str) else node for node in nodes] for nodes in subgraphs]
        return SubgraphSet.from_lists(lists, num_nodes=graph.num_nodes).nodes

    def probabilities(self, subgraphs: Subgraphs) -> NDArray[np.float32]:
        """Class probabilities (n, classes); for regression the value, in units of the label (n, 1)."""
        return self.scores(self.outputs(self.rows(subgraphs)))

    def scores(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probabilities, or values in units of the label, from :meth:`outputs`."""
        return task_of(self.spec.task).scores(outputs, self.spec.standards.get("target")).astype(np.float32)

    @property
    def thresholds(self) -> Thresholds:
        """Probabilities above which a label, or the positive class of two, is predicted."""
        return self.fitted.thresholds

    def label_text(self, scores: NDArray[np.float32]) -> str:
        """The label of a subgraph as text, from its row of :meth:`scores`: a class, several classes, or a value."""
        task, classes = task_of(self.spec.task), self.spec.classes
        (found,) = task.decide(scores[None], self.thresholds)
        names = task.names(found, classes)
        return names[0] if len(names) == 1 else label_separator(classes).join(names)

    def novelty(self, subgraphs: Ragged) -> NDArray[np.float64] | None:
        """The share of training subgraphs that are less unusual than each (n,); None for a part of another model."""
        known = self.spec.novelty
        if known is None:
            return None
        if self._comparison is None:
            self._comparison = Comparison(self.graph, known.references)
        return self._comparison.novelty(subgraphs, known.distances)

    def predict(self, subgraphs: Subgraphs) -> list[str]:
        return [self.label_text(scores) for scores in self.probabilities(subgraphs)]

    def embeddings(self, subgraphs: Ragged) -> NDArray[np.float32]:
        """z_S (n, width), as the head receives it, by the first network."""
        return self.fitted.vectors(subgraphs)

    def part(self, name: str) -> Predictor:
        """The predictor of one member of a portfolio; it shares the graph, and the member as it was opened."""
        found = copy(self)
        found.checkpoint = self.checkpoint.parts[name]
        found.spec, found.fitted = found.checkpoint.spec, cast(FittedAuto, self.fitted).parts[name]
        found.model = model_of(found.spec)
        return found

    @property
    def portfolio(self) -> FittedAuto | None:
        return self.fitted if isinstance(self.fitted, FittedAuto) else None

    @property
    def member_with_channels(self) -> str | None:
        """The heaviest member of a portfolio that has channels; None without any, and for other models."""
        if self.portfolio is None:
            return None
        shares, parts = self.portfolio.shares, self.portfolio.parts
        names = [name for name in shares if isinstance(parts[name], FittedChannelModel)]
        return max(names, key=shares.__getitem__, default=None)

    def with_channels(self) -> Predictor | None:
        """The predictor whose channels and anchors explain predictions: this one, a portfolio's member, or None."""
        member = self.member_with_channels
        if member is not None:
            return self.part(member)
        return self if isinstance(self.fitted, FittedChannelModel) else None

    def networks(self) -> list[SubGNN]:
        """The trained networks of :meth:`with_channels`, over the nodes they were trained with; none without."""
        source = self.with_channels()
        return [] if source is None else list(cast(FittedChannelModel, source.fitted).networks())

    def measured(self, subgraphs: Ragged) -> MeasuredForNetworks:
        """Subgraphs measured against anchors, for a model with channels."""
        return cast("MeasuredForNetworks", cast(FittedChannelModel, self.fitted).measured(subgraphs))

    def mean_vectors(self, subgraphs: Ragged) -> NDArray[np.float32] | None:
        """The reference of explanations: the mean vector of subgraphs, by each network with channels.

        Of more than 256 subgraphs, 256 are taken, evenly spaced. None for a model without channels.

        Shapes:
            returns: (networks, width).
        """
        source = self.with_channels()
        if source is None:
            return None
        import torch

        chosen = np.linspace(0, len(subgraphs) - 1, min(len(subgraphs), _MEAN_OF)).astype(np.int64)
        measured = source.measured(subgraphs.take(np.unique(chosen)))
        with torch.no_grad():
            means = [one.network.embed(measured.inputs.whole).mean(dim=0) for one in measured.networks]
        found: NDArray[np.float32] = torch.stack(means).float().cpu().numpy()
        return found


def names_of(graph: Graph, nodes: Sequence[int]) -> tuple[str, ...]:
    """Nodes as a file of subgraphs lists them: by name, or by id if the graph has no names."""
    return tuple(str(node) if graph.names is None else graph.names.written(node) for node in nodes)


def _hashed(graph: Graph) -> Graph:
    """The same graph, and the directed graph it came from, with hashes that are known."""
    oriented = None if graph.oriented is None else _hashed(graph.oriented)
    return replace(graph, known_hash=graph.content_hash, oriented=oriented)


def pooled(predictor: Predictor, engine: Engine | None, *, bundle: Path | None = None) -> Predictor:
    """A predictor that computes with an engine, whose workers map ``bundle``, the unchanged file of the graph."""
    if engine is None or engine.slots == 1:
        return predictor
    graph = place_graph(engine, predictor.graph, source=bundle)
    model = engine.share((predictor.checkpoint, dict(predictor.tables)))
    found = copy(predictor)
    found.fitted = _PooledModel(engine, partial(_Piece, uuid4().hex, graph, model), predictor.fitted)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Subgraphs, and what a worker opens: a checked checkpoint, with the node embeddings that it starts from."""

    key: str
    graph: Shared[Graph]
    model: Shared[tuple[Checkpoint, Tables]]
    number: int
    what: What
    nodes: Ragged


_opened: dict[str, FittedModel] = {}  # by the key of its pieces: what this worker has opened, at most one model


def _answer(piece: _Piece) -> NDArray[np.float32]:
    if piece.key not in _opened:
        import torch

        torch.set_num_threads(1)
        checkpoint, tables = piece.model.get()
        _opened.clear()
        _opened[piece.key] = open_checkpoint(checkpoint, piece.graph.get(), LoadContext("cpu", tables, cache=True))
    answer: NDArray[np.float32] = getattr(_opened[piece.key], piece.what)(piece.nodes)
    return answer


class _PooledModel(FittedModel):
    """A fitted model in each worker of an engine; ``here`` is the same in this process."""

    def __init__(self, engine: Engine, piece: Callable[..., _Piece], here: FittedModel) -> None:
        self._engine, self._piece, self._here = engine, piece, here
        self.thresholds = here.thresholds

    def outputs(self, subgraphs: Ragged) -> NDArray[np.float32]:
        return self._answer("outputs", subgraphs)

    def vectors(self, subgraphs: Ragged) -> NDArray[np.float32]:
        return self._answer("vectors", subgraphs)

    def _answer(self, what: What, subgraphs: Ragged) -> NDArray[np.float32]:
        count = len(subgraphs)
        size = BATCH * max(1, -(-count // (_PIECES_A_SLOT * self._engine.slots * BATCH)))
        if count <= size:
            return getattr(self._here, what)(subgraphs)  # type: ignore[no-any-return]
        rows = [np.arange(begin, min(begin + size, count)) for begin in range(0, count, size)]
        pieces = [self._piece(i, what, subgraphs.take(part)) for i, part in enumerate(rows)]
        found: dict[int, NDArray[np.float32]] = {}
        for piece, answer in self._engine.map(_answer, pieces):
            if isinstance(answer, Failure):
                if answer.error is None and not answer.details:  # a lost worker, which is no bug
                    hint = "use fewer processes, so that each has more memory"
                    raise UserError(answer.message, where="workers", hint=hint)
                answer.throw()
            found[piece.number] = answer
        return np.concatenate([found[i] for i in range(len(rows))])
