"""The network: batches of prepared subgraphs, vectors of patches, layers, and the model that joins them."""

from subgnn.models.heads import Head
from subgnn.models.subgnn.batches import Batch, Inputs
from subgnn.models.subgnn.layer import SubchannelLayer
from subgnn.models.subgnn.model import Extras, SubGNN
from subgnn.models.subgnn.patch_encoder import PatchEncoder

__all__ = ["Batch", "Extras", "Head", "Inputs", "PatchEncoder", "SubGNN", "SubchannelLayer"]
