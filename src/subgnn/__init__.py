"""Learning on subgraphs: Subgraph Neural Networks (Alsentzer et al., NeurIPS 2020), and beyond."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from subgnn.versions import __version__

if TYPE_CHECKING:
    from subgnn.api.estimator import SubgraphClassifier, SubgraphRegressor
    from subgnn.api.inputs import read_tables
    from subgnn.api.run import Run, draw, embed_subgraphs, load, train
    from subgnn.data.dataset import Dataset
    from subgnn.data.describe import describe
    from subgnn.data.formats import read_dataset
    from subgnn.data.formats.bundle import write_bundle
    from subgnn.data.formats.folder import write_folder
    from subgnn.data.formats.libraries import from_networkx, from_pyg, from_scipy, to_networkx, to_pyg, to_scipy
    from subgnn.data.graph import Graph
    from subgnn.data.strings import NodeNames
    from subgnn.data.subgraphs import SubgraphSet
    from subgnn.errors import DataError, DataWarning, SubgnnError, UserError
    from subgnn.inference.search import nearest_vectors
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
    "describe",
    "draw",
    "embed_subgraphs",
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

_NAMES = {
    "api.estimator": ("SubgraphClassifier", "SubgraphRegressor"),
    "api.inputs": ("read_tables",),
    "api.run": ("Run", "draw", "embed_subgraphs", "load", "train"),
    "data.dataset": ("Dataset",),
    "data.describe": ("describe",),
    "data.formats": ("read_dataset",),
    "data.formats.bundle": ("write_bundle",),
    "data.formats.folder": ("write_folder",),
    "data.formats.libraries": ("from_networkx", "from_pyg", "from_scipy", "to_networkx", "to_pyg", "to_scipy"),
    "data.graph": ("Graph",),
    "data.strings": ("NodeNames",),
    "data.subgraphs": ("SubgraphSet",),
    "errors": ("DataError", "DataWarning", "SubgnnError", "UserError"),
    "inference.search": ("nearest_vectors",),
    "ragged": ("Ragged",),
}
"""Public names by module. They are imported when they are first used, which takes a second or two."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES |= {module: module for module in ("data", "errors", "ragged")}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'subgnn' has no attribute '{name}'")
    module = import_module(f"subgnn.{_MODULES[name]}")
    value = getattr(module, name) if name in __all__ else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
