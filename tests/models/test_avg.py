"""AVG is the mean."""

from __future__ import annotations

import numpy as np
import torch

from subgnn import Ragged
from subgnn.models.avg import Average
from subgnn.models.sources import NodeSets
from subgnn.models.subgnn import Head


def test_a_subgraph_is_the_mean_of_its_nodes():
    table = torch.tensor([[1.0, 0.0], [3.0, 4.0], [5.0, -1.0]])
    model = Average(torch.arange(3), table, Head(2, 3), trainable=False)
    batch = NodeSets(Ragged.from_rows([[0, 1], [2], [0, 1, 2]])).batch(np.array([2, 0, 1]))
    np.testing.assert_allclose(model.embed(batch).numpy(), [[3.0, 1.0], [2.0, 2.0], [5.0, -1.0]])
