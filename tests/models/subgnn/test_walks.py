"""Walks in packed form, by hand."""

from __future__ import annotations

import numpy as np

from subgnn import Ragged
from subgnn.models.subgnn.walks import Picking, Walks


def test_walks_by_hand():
    # Two walks a patch; longest first: [9, 7, 9], then [7, 3] and [4, 9]; the empty one is left out.
    walks = Walks(Ragged.from_rows([[7, 3], [], [9, 7, 9], [4, 9]]), 2)
    assert walks.num_patches == 2
    assert walks.sizes == [3, 3, 1]
    nodes = walks.nodes[walks.places].tolist()
    assert nodes == [9, 7, 4, 7, 3, 9, 9]
    assert walks.nodes.tolist() == [3, 4, 7, 9]
    assert walks.owner.tolist() == [1, 0, 1, 1, 0, 1, 1]
    # Steps 0 and 6 are the ends of the longest walk, 3 its middle; 1 and 4, 2 and 5 are those of the others.
    assert walks.back.tolist() == [6, 4, 5, 3, 1, 2, 0]
    assert set(dict(walks.named_buffers())) == {"nodes", "places", "back", "owner"}


def test_steps_by_row():
    picking = Picking.of(np.array([2, 0, 2, 3]), 5)
    assert picking.order.tolist() == [1, 0, 2, 3]
    assert picking.offsets.tolist() == [0, 1, 1, 3, 4, 4]
    assert picking.rows.tolist() == [2, 0, 2, 3]
