"""An exported program gives the logits of the run, for any number of subgraphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from subgnn import Ragged, UserError
from subgnn.config.settings import ChannelSettings
from subgnn.inference.export import make_program, program_inputs
from subgnn.models.baselines.bag import BagSettings
from tests.inference.explained import baseline, explained, run_of
from tests.models.portfolios import opened
from tests.training.examples import dataset, recipe

pytestmark = pytest.mark.slow

# One of shared nodes, one of patches and their walks, one of own anchors.
CHANNELS = tuple(
    ChannelSettings(kind, side, 3)
    for kind, side in (("position", "border"), ("structure", "internal"), ("neighborhood", "border"))
)


def test_logits_are_equal(tmp_path):
    data = dataset()
    settings = recipe(1, channels=CHANNELS, topology=True, baseline="bag", hidden_norm="batch", layers=2)
    predictor = run_of(data, settings.with_method_settings(BagSettings(normalize="rows")))
    torch.export.save(make_program(predictor), tmp_path / "it.pt2")
    program = torch.export.load(tmp_path / "it.pt2").module()
    for rows in (data.subgraphs.nodes, Ragged.from_rows([[3]])):
        found = program(**program_inputs(predictor, rows)).detach().numpy()
        np.testing.assert_allclose(found, predictor.outputs(rows), atol=1e-6)


def test_what_cannot_be_a_program_says_so():
    for predictor, why in (
        (baseline("bag")[1], "bag is not a network of channels"),
        (opened()[1], "auto is not a network of channels"),
        (explained(ensemble=True)[1], "means over 2 draws"),
        (explained(aggregation="max", topology=True)[1], 'aggregation is "max"'),
    ):
        with pytest.raises(UserError, match=f"cannot be exported as a torch.export program: .*{why}"):
            make_program(predictor)
