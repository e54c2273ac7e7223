"""Search spaces: what is read, what is refused, and what is drawn from them."""

import tomllib
from dataclasses import replace

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from subgnn.config.recipes import recipe_names
from subgnn.config.settings import ChannelSettings
from subgnn.errors import UserError
from subgnn.lab.tuning.tune import find_space, parse_space, space_names
from subgnn.models.recipes import find_recipe
from tests.training.examples import recipe

TEXT = """
note = "Why these."
training.lr = {low = 1e-4, high = 1e-2, log = true}
training.weight_decay = {low = 0, high = 1, step = 0.25}
model.layers = {low = 1, high = 3}
model.head = {low = 4, high = 16, step = 4}
model.norm = {choices = ["none", "batch"]}

channels."position/border".num_anchors = {low = 2, high = 6, step = 2}
channels.structure.num_anchors = {choices = [1, 5]}
"""


def parse(text: str):
    return parse_space(tomllib.loads(text), "space.toml", name="space")


def test_read(tmp_path):
    (tmp_path / "mine.toml").write_text(TEXT)
    space = find_space(str(tmp_path / "mine.toml"))
    assert space.name == "mine"
    assert space.dimensions == {
        "training.lr": FloatDistribution(1e-4, 1e-2, log=True),
        "training.weight_decay": FloatDistribution(0.0, 1.0, step=0.25),
        "model.layers": IntDistribution(1, 3),
        "model.head": IntDistribution(4, 16, step=4),
        "model.norm": CategoricalDistribution(("none", "batch")),
        "channels.position/border": IntDistribution(2, 6, step=2),
        "channels.structure": CategoricalDistribution((1, 5)),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training.lrr = {low = 0, high = 1}", "unknown setting 'training.lrr'; .*did you mean 'lr'"),
        ("trainin.lr = {low = 0, high = 1}", "unknown section 'trainin'; .*did you mean 'training'"),
        ("training.lr = 1", r"training.lr is '1'; accepted: \{low = "),
        ("training.lr = {low = 0, hihg = 1}", r"training.lr is .*; accepted: \{low = "),
        ("training.lr = {low = 2, high = 1}", "training.lr is .*; accepted"),
        ("training.lr = {low = 1, high = 2, step = 5}", "step must be no more than high - low"),
        ("training.lr = {low = -1, high = 2}", r"training.lr is -1.*from 0"),
        ("model.layers = {low = 0.5, high = 2}", "model.layers is .*its numbers must be whole"),
        ("model.dropout = {low = 0, high = 2}", "model.dropout is 2.*from 0 to 1"),
        ("model.norm = {low = 0, high = 2}", "model.norm is '0'; accepted: none, batch"),
        ('model.norm = {choices = ["bacth"]}', "model.norm is 'bacth'; .*did you mean 'batch'"),
        ("channels.strukture.num_anchors = {low = 1, high = 2}", "unknown name 'strukture'.*mean 'structure'"),
        ("channels.structure.num_anchors = {low = 0, high = 2}", "num_anchors is 0; accepted: a whole number from 1"),
        ("channels.structure.use = {choices = [1, 0]}", "unknown name 'use' in channels.structure; .*num_anchors"),
        ("channels.structure = 5", "channels.structure is '5'; a table is accepted"),
        ("", "the search space is empty"),
    ],
)
def test_refused(text, message):
    with pytest.raises(UserError, match=message) as caught:
        parse(text)
    assert caught.value.where == "space.toml"
    assert "\n" not in str(caught.value)


def test_values_go_where_they_belong():
    own, space = {}, parse(TEXT)
    assert space.apply(recipe(), lambda name, _, value: own.setdefault(name, value)) == recipe()
    assert own == {
        "training.weight_decay": 0.0,
        "training.lr": 1e-2,
        "model.layers": 1,
        "model.head[0]": 16,
        "model.head[1]": 8,
        "model.norm": "batch",
        "channels.position/border": 4,
        "channels.structure": 3,
    }
    drawn = space.apply(recipe(), lambda _, one, __: one.choices[-1] if hasattr(one, "choices") else one.high)
    assert (drawn.training.lr, drawn.model.layers, drawn.model.head, drawn.model.norm) == (1e-2, 3, (16, 16), "batch")
    # structure has one number for both sides.
    assert {channel.name: channel.num_anchors for channel in drawn.channels} == {
        "position/internal": 3,
        "position/border": 6,
        "neighborhood/internal": 3,
        "neighborhood/border": 3,
        "structure/internal": 5,
        "structure/border": 5,
    }
    assert drawn.prepare == recipe().prepare
    # A channel that the recipe lacks stays off.
    bare = replace(recipe(), channels=(ChannelSettings("structure", "border", 3),))
    changed = space.apply(bare, lambda name, _, value: 5 if name.startswith("channels") else value)
    assert changed == replace(bare, channels=(ChannelSettings("structure", "border", 5),))


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", space_names())
def test_shipped_spaces_fit_every_recipe(name):
    space = find_space(name)
    for given in recipe_names():
        base = find_recipe(given)
        if base.method == "subgnn" or name not in ("paper", "paper_wide"):
            assert space.apply(base, lambda *given: given[-1]) is not None
