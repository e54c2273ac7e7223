"""SubGNN as a part of somebody else's module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from subgnn.models.subgnn.batches import Beside, Inputs

from .examples import build_model, prepare_example
from .test_model import states_of_some


class Outer(nn.Module):
    """A network that has a SubGNN and a layer of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.last = inner, nn.Linear(3, 1)

    def forward(self, batch):
        return self.last(torch.tanh(self.inner(batch)))


@pytest.fixture(scope="module")
def example():
    _, prepared = prepare_example(1, layers=1)
    known, rows = states_of_some(prepared)
    options = {"features": "beside", "norm": "batch"}

    def build(seed: int) -> Outer:
        return Outer(build_model(prepared, seed=seed, num_known=len(known), **options)[0].float())

    return build, Inputs(prepared, build_model(prepared)[1], Beside(known=rows)).whole


def test_every_parameter_learns(example):
    build, batch = example
    outer = build(0)
    before = {name: p.detach().clone() for name, p in outer.named_parameters()}
    optimizer = torch.optim.Adam(outer.parameters(), lr=0.1)
    outer(batch).square().sum().backward()
    optimizer.step()
    assert {name for name, p in outer.named_parameters() if torch.equal(p, before[name])} == set()
    assert outer.inner.component_states[0].abs().max() == 0


def test_state_goes_out_and_in_without_features_and_in_double_precision(example):
    build, batch = example
    first, second = build(0).eval(), build(1).eval()
    second.inner.features = first.inner.features  # they belong to the graph, not to the state
    assert not torch.allclose(first(batch), second(batch))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(batch), second(batch))
    assert not any("features" in name for name in first.state_dict())
    torch.testing.assert_close(second.double()(batch), first(batch).double(), rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_same(example):
    build, batch = example
    outer = build(0).eval()
    expected = outer(batch)
    torch.testing.assert_close(outer.to("cuda")(batch.to("cuda")).cpu(), expected, rtol=1e-4, atol=1e-5)
