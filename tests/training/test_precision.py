"""Mixed precision on a CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from subgnn.api.train_recipe import train
from subgnn.errors import UserError
from subgnn.inference.predictor import Predictor
from subgnn.training import resume
from subgnn.training.devices import make_fabric
from subgnn.training.options import Callbacks
from subgnn.training.run_dir import CHECKPOINT

from .examples import dataset, recipe
from .test_run import assert_equal_weights, weights


def in_precision(precision: str, epochs: int = 4, **model):
    found = recipe(epochs, norm="layer", dropout=0.0, output="both", **model)
    return replace(found, training=replace(found.training, precision=precision, lr=1e-3))


def test_the_network_computes_in_bfloat16_and_its_inputs_keep_their_digits():
    fabric = make_fabric("cpu", "bf16-mixed")
    seen = []

    class Watch(torch.nn.Linear):
        def forward(self, distance):
            out = super().forward(distance)
            seen.append((distance.dtype, out.dtype))
            return out

    model, _ = fabric.setup(net := Watch(2, 2), torch.optim.Adam(net.parameters()))
    assert model(torch.ones(1, 2)).dtype == torch.float32
    assert seen == [(torch.float32, torch.bfloat16)]


def test_bfloat16_learns_what_float32_learns(tmp_path):
    data = dataset()
    outputs = {}
    for precision in ("32-true", "bf16-mixed"):
        train(data, in_precision(precision), tmp_path / precision, device="cpu")
        outputs[precision] = Predictor(tmp_path / precision / CHECKPOINT, data.graph).outputs(data.subgraphs.nodes)
    whole, mixed = outputs.values()
    assert not np.array_equal(whole, mixed)
    np.testing.assert_allclose(mixed, whole, atol=0.05 * np.abs(whole).max())


@pytest.mark.slow
def test_a_mixed_run_goes_on_as_if_it_was_not_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "SECONDS_BETWEEN_SAVES", 0.0)
    train(dataset(), in_precision("bf16-mixed", hidden_norm="batch"), tmp_path / "whole", device="cpu")

    def interrupt(record):
        if record["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            dataset(),
            in_precision("bf16-mixed", hidden_norm="batch"),
            tmp_path / "cut",
            device="cpu",
            callbacks=Callbacks(on_epoch=interrupt),
        )
    train(dataset(), in_precision("bf16-mixed", hidden_norm="batch"), tmp_path / "cut", device="cpu", resume=True)
    assert_equal_weights(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_half_precision_on_a_cpu_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UserError) as caught:
        train(dataset(), in_precision("16-mixed"), tmp_path / "run", device="cpu")
    assert str(caught.value).startswith("training.precision: 16-mixed needs a GPU; accepted on a CPU: 32-true, bf16")
    assert not (tmp_path / "run").exists()
