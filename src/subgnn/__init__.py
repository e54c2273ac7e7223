"""Learning on subgraphs: Subgraph Neural Networks (Alsentzer et al., NeurIPS 2020), and beyond."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from subgnn.versions import __version__ as __version__

if TYPE_CHECKING:
    from subgnn.api.estimator import SubgraphClassifier as SubgraphClassifier
    from subgnn.api.estimator import SubgraphRegressor as SubgraphRegressor
    from subgnn.api.inputs import read_tables as read_tables
    from subgnn.api.run import Run as Run
    from subgnn.api.run import draw as draw
    from subgnn.api.run import embed_subgraphs as embed_subgraphs
    from subgnn.api.run import load as load
    from subgnn.api.run import train as train
    from subgnn.data.dataset import Dataset as Dataset
    from subgnn.data.describe import describe as describe
    from subgnn.data.formats import read_dataset as read_dataset
    from subgnn.data.formats.bundle import write_bundle as write_bundle
    from subgnn.data.formats.folder import write_folder as write_folder
    from subgnn.data.formats.libraries import from_networkx as from_networkx
    from subgnn.data.formats.libraries import from_pyg as from_pyg
    from subgnn.data.formats.libraries import from_scipy as from_scipy
    from subgnn.data.formats.libraries import to_networkx as to_networkx
    from subgnn.data.formats.libraries import to_pyg as to_pyg
    from subgnn.data.formats.libraries import to_scipy as to_scipy
    from subgnn.data.graph import Graph as Graph
    from subgnn.data.strings import NodeNames as NodeNames
    from subgnn.data.subgraphs import SubgraphSet as SubgraphSet
    from subgnn.errors import DataError as DataError
    from subgnn.errors import DataWarning as DataWarning
    from subgnn.errors import SubgnnError as SubgnnError
    from subgnn.errors import UserError as UserError
    from subgnn.inference.search import nearest_vectors as nearest_vectors
    from subgnn.ragged import Ragged as Ragged

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
__all__ = sorted(["__version__", *_MODULES])
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
