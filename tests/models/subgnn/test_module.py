"""SubGNN as a part of somebody else's module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from subgnn.models.subgnn import Inputs

from .examples import build_model, prepare_example
from .test_model import states_of_some


class Outer(nn.Module):
    """A network that has a SubGNN and a layer of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.last = nn.Linear(3, 1)

    def forward(self, batch):
        return self.last(torch.tanh(self.inner(batch)))


@pytest.fixture(scope="module")
def example():
    _, prepared = prepare_example(1, layers=1)
    known, rows = states_of_some(prepared)

    def build(seed: int) -> Outer:
        inner, _ = build_model(
            prepared,
            seed=seed,
            features="beside",
            num_known=len(known),
            output="both",
            readout="attention",
            norm="batch",
        )
        return Outer(inner.float())

    nodes = build_model(prepared)[1]
    return build, Inputs(prepared, nodes, known=rows).whole


def test_every_parameter_learns(example):
    build, batch = example
    outer = build(0)
    before = {name: p.detach().clone() for name, p in outer.named_parameters()}
    optimizer = torch.optim.Adam(outer.parameters(), lr=0.1)
    outer(batch).square().sum().backward()
    optimizer.step()
    still = {name for name, p in outer.named_parameters() if torch.equal(p, before[name])}
    assert still == set()
    assert "inner.component_states" in before
    assert outer.inner.component_states[0].abs().max() == 0


def test_state_goes_out_and_in(example):
    build, batch = example
    first, second = build(0).eval(), build(1).eval()
    second.inner.features = first.inner.features  # they belong to the graph, not to the state
    assert not torch.allclose(first(batch), second(batch))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(batch), second(batch))
    assert not any("features" in name for name in first.state_dict())


def test_everything_moves_to_a_device(example):
    build, _ = example
    outer = build(0).to("meta")
    tensors = [*outer.parameters(), *outer.buffers()]
    assert {t.device.type for t in tensors} == {"meta"}
    assert "inner.features" in dict(outer.named_buffers())
    owned = [v for m in outer.modules() for v in vars(m).values() if isinstance(v, torch.Tensor)]
    assert owned == []  # a tensor that is neither would stay behind


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_same(example):
    build, batch = example
    outer = build(0).eval()
    expected = outer(batch)
    found = outer.to("cuda")(batch.to("cuda"))
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_double_precision_takes_the_same_batch(example):
    build, batch = example
    outer = build(0).eval()
    expected = outer(batch)
    found = outer.double()(batch)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected.double(), rtol=1e-4, atol=1e-5)
