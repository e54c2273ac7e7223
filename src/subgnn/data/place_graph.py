"""A graph for the workers of an engine: once on each machine, mapped from a bundle where there is one."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from socket import gethostname

from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import is_bundle
from subgnn.data.graph import Graph
from subgnn.errors import DataError
from subgnn.parallel.engine import Engine, Shared


@dataclass(frozen=True, slots=True)
class MappedGraph:
    """The undirected graph of a bundle, which a worker maps into memory: one copy of its pages on each machine."""

    path: str
    graph_hash: str

    @lru_cache(maxsize=1)  # noqa: B019 - one graph for the life of a worker
    def get(self) -> Graph:
        """The graph; an error if the worker's machine has no bundle at this path, or one with a different graph."""
        hint = "put the bundle at this path on every machine, or give a folder, whose graph is sent to the workers"
        if not Path(self.path).is_file():
            raise DataError(f"there is no such file on {gethostname()}", where=self.path, hint=hint)
        graph = read_dataset(self.path).graph
        if graph.content_hash != self.graph_hash:
            raise DataError(f"the file on {gethostname()} holds a different graph", where=self.path, hint=hint)
        return graph


def place_graph(engine: Engine, graph: Graph, *, source: Path | None = None, with_names: bool = False) -> Shared[Graph]:
    """Make an undirected graph available to workers, once on each machine: mapped from its bundle, or sent."""
    if source is not None and source.is_file() and is_bundle(source) and graph.oriented is None:
        return MappedGraph(str(source.resolve()), graph.content_hash)

    def bare(one: Graph) -> Graph:
        oriented = None if one.oriented is None else bare(one.oriented)
        # Workers need not compute the hash again.
        return replace(one, names=one.names if with_names else None, known_hash=one.content_hash, oriented=oriented)

    return engine.share(bare(graph))
