"""Learning on subgraphs: Subgraph Neural Networks (Alsentzer et al., NeurIPS 2020), and beyond."""

from subgnn.data.dataset import Dataset
from subgnn.data.describe import describe
from subgnn.data.formats import read_dataset
from subgnn.data.formats.bundle import write_bundle
from subgnn.data.formats.folder import write_folder
from subgnn.data.formats.interop import from_networkx, from_pyg, from_scipy, to_networkx, to_pyg, to_scipy
from subgnn.data.graph import Graph
from subgnn.data.strings import NodeNames
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import DataError, DataWarning, SubgnnError, UserError
from subgnn.ragged import Ragged

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "DataWarning",
    "Dataset",
    "Graph",
    "NodeNames",
    "Ragged",
    "SubgnnError",
    "SubgraphSet",
    "UserError",
    "describe",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "read_dataset",
    "to_networkx",
    "to_pyg",
    "to_scipy",
    "write_bundle",
    "write_folder",
]
