"""The network, one idea a file: patch_encoder, layer, similarity, readout, head, model."""

from subgnn.models.head import Head
from subgnn.models.subgnn.inputs import Batch, Inputs
from subgnn.models.subgnn.layer import SubchannelLayer
from subgnn.models.subgnn.model import SubGNN
from subgnn.models.subgnn.patch_encoder import PatchEncoder
from subgnn.models.subgnn.readout import Readout

__all__ = ["Batch", "Head", "Inputs", "PatchEncoder", "Readout", "SubGNN", "SubchannelLayer"]
