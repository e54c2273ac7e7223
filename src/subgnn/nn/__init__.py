"""The network, one idea a file: patch_encoder, layer, similarity, readout, head, model."""

from subgnn.nn.head import Head
from subgnn.nn.inputs import Batch, Inputs
from subgnn.nn.layer import SubchannelLayer
from subgnn.nn.model import SubGNN
from subgnn.nn.patch_encoder import PatchEncoder
from subgnn.nn.readout import Readout

__all__ = ["Batch", "Head", "Inputs", "PatchEncoder", "Readout", "SubGNN", "SubchannelLayer"]
