"""Learning on subgraphs: Subgraph Neural Networks (Alsentzer et al., NeurIPS 2020), and beyond."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from subgnn.versions import __version__

if TYPE_CHECKING:
    from subgnn.api.estimator import SubgraphClassifier, SubgraphRegressor
    from subgnn.api.inputs import read_tables
    from subgnn.api.run import Run, embed_subgraphs, load
    from subgnn.api.train import train
    from subgnn.data.dataset import Dataset
    from subgnn.data.describe import describe
    from subgnn.data.formats import read_dataset
    from subgnn.data.formats.bundle import write_bundle
    from subgnn.data.formats.folder import write_folder
    from subgnn.data.formats.objects import (
        dataset_from_pyg,
        dataset_to_pyg,
        from_dgl,
        from_igraph,
        from_networkx,
        from_pyg,
        from_scipy,
        to_networkx,
        to_pyg,
        to_scipy,
    )
    from subgnn.data.graph import Graph
    from subgnn.data.strings import NodeNames
    from subgnn.data.subgraphs import SubgraphSet
    from subgnn.errors import DataError, DataWarning, SubgnnError, UserError
    from subgnn.inference.nearest import nearest_vectors
    from subgnn.ragged import Ragged


__all__ = [
    "DataError",
    "DataWarning",
    "Dataset",
    "Graph",
    "NodeNames",
    "Ragged",
    "Run",
    "SubgnnError",
    "SubgraphClassifier",
    "SubgraphRegressor",
    "SubgraphSet",
    "UserError",
    "__version__",
    "dataset_from_pyg",
    "dataset_to_pyg",
    "describe",
    "embed_subgraphs",
    "from_dgl",
    "from_igraph",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "load",
    "nearest_vectors",
    "read_dataset",
    "read_tables",
    "to_networkx",
    "to_pyg",
    "to_scipy",
    "train",
    "write_bundle",
    "write_folder",
]

_MODULES = {
    "DataError": "subgnn.errors",
    "DataWarning": "subgnn.errors",
    "Dataset": "subgnn.data.dataset",
    "Graph": "subgnn.data.graph",
    "NodeNames": "subgnn.data.strings",
    "Ragged": "subgnn.ragged",
    "Run": "subgnn.api.run",
    "SubgnnError": "subgnn.errors",
    "SubgraphClassifier": "subgnn.api.estimator",
    "SubgraphRegressor": "subgnn.api.estimator",
    "SubgraphSet": "subgnn.data.subgraphs",
    "UserError": "subgnn.errors",
    "dataset_from_pyg": "subgnn.data.formats.objects",
    "dataset_to_pyg": "subgnn.data.formats.objects",
    "describe": "subgnn.data.describe",
    "embed_subgraphs": "subgnn.api.run",
    "from_dgl": "subgnn.data.formats.objects",
    "from_igraph": "subgnn.data.formats.objects",
    "from_networkx": "subgnn.data.formats.objects",
    "from_pyg": "subgnn.data.formats.objects",
    "from_scipy": "subgnn.data.formats.objects",
    "load": "subgnn.api.run",
    "nearest_vectors": "subgnn.inference.nearest",
    "read_dataset": "subgnn.data.formats",
    "read_tables": "subgnn.api.inputs",
    "to_networkx": "subgnn.data.formats.objects",
    "to_pyg": "subgnn.data.formats.objects",
    "to_scipy": "subgnn.data.formats.objects",
    "train": "subgnn.api.train",
    "write_bundle": "subgnn.data.formats.bundle",
    "write_folder": "subgnn.data.formats.folder",
    "data": "subgnn.data",
    "errors": "subgnn.errors",
    "ragged": "subgnn.ragged",
}
"""Where names are from. They are imported when they are asked for, which takes a second or two."""


def __getattr__(name: str) -> Any:
    """A name of the package, on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'subgnn' has no attribute '{name}'")
    module = import_module(_MODULES[name])
    value = getattr(module, name) if name in __all__ else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
