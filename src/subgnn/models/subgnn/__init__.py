"""The network: batches of prepared subgraphs, vectors of patches, layers, and the model that joins them."""

from subgnn.models.subgnn.batches import Inputs
from subgnn.models.subgnn.model import SubGNN

__all__ = ["Inputs", "SubGNN"]
