"""Settings: numbers within their bounds, each channel once, and mistakes named where they were made."""

import typing
from dataclasses import fields

import pytest

from subgnn.config.settings import CandidateSettings, Recipe
from subgnn.errors import UserError
from subgnn.models.recipes import find_recipe, parse_recipe, portfolio
from subgnn.models.registry import MODELS

PROBABILITIES = {
    *("prepare.beta", "model.dropout", "model.lstm_dropout", "pretrain.dropout", "pretrain.fraction"),
    *("training.plateau_factor", "message_passing.ratio", "s2n.edge_dropout", "bag.absent", "diffusion.absent"),
}
FROM_ONE = {
    *(f"prepare.{name}" for name in ("hops", "walks", "walk_length", "patch_length")),
    *(f"pretrain.{name}" for name in ("hidden", "batch_size", "epochs", "steps", "walk_length")),
    *(f"diffusion.{name}" for name in ("push_edges", "push_nodes")),
    *(f"message_passing.{name}" for name in ("walks", "walk_length")),
    *(f"training.{name}" for name in ("repeats", "batch_size", "epochs", "members")),
    *("embeddings.dim", "model.lstm_layers"),
}


def numbers():
    """Every setting that is a number, and whether it is a whole one."""
    methods = {kind.section: kind for model in MODELS.values() for kind in model.settings}
    for section, kind in (typing.get_type_hints(Recipe) | methods).items():
        if hasattr(kind, "__dataclass_fields__"):
            hints = typing.get_type_hints(kind)
            for field in fields(kind):
                if hints[field.name] in (int, float):
                    yield f"{section}.{field.name}", hints[field.name]


NUMBERS = dict(numbers())
SIZES = """
    prepare.patch_length prepare.walks prepare.walk_length pretrain.hidden pretrain.batch_size
    pretrain.walk_length
    diffusion.push_nodes message_passing.walks message_passing.walk_length
"""
DEPTHS = "model.layers model.lstm_layers training.members"
HIGHEST = dict.fromkeys(SIZES.split(), 10**6) | dict.fromkeys(DEPTHS.split(), 1000)
HIGHEST |= {"embeddings.dim": 2**16, "pretrain.seed": 2**63 - 1}
HIGHEST |= {"s2n.sub_layers": 100, "s2n.span": 1000}
HIGHEST |= {"diffusion.damping": 0.99}
HIGHEST |= {"vectors.width": 2**16}
HIGHEST |= {"auto.folds": 100, "auto.repeats": 100, "auto.time": 10**9}
LOWEST = dict.fromkeys(FROM_ONE, 1) | {"auto.folds": 2, "auto.time": 1, "message_passing.ratio": 0.5, "s2n.span": 1e-3}
LOWEST |= {"vectors.width": 19}


def parse(*overrides):
    return parse_recipe({}, "mine.toml", overrides)


def value(recipe, path):
    section, key = path.split(".")
    return recipe.plain()[section][key]


@pytest.mark.parametrize("path", NUMBERS)
def test_the_ends_of_the_bounds_are_accepted_and_what_is_beyond_is_not(path):
    kind, low = NUMBERS[path], LOWEST.get(path, 0)
    usual = 1 if path in PROBABILITIES else 10**9 if kind is int else 1e30
    high = HIGHEST.get(path, usual)
    words = f"a {'whole ' if kind is int else ''}number from {low}" + f" to {high:,}"
    beyond = [low - 1, "inf", "nan"] if kind is float else [low - 1]
    for good in (low, high):
        assert value(parse(f"{path}={good}"), path) == good
    for bad in [*beyond, high + 1 if kind is int else high * 1.01]:
        with pytest.raises(UserError) as caught:
            parse(f"{path}={bad}")
        assert str(caught.value) == f"settings: {path} is {kind(bad)!r}; accepted: {words}"


def test_widths_and_anchors_are_from_one():
    with pytest.raises(
        UserError, match=r"^settings: model\.head\[1\] is 0; accepted: a whole number from 1 to 1,000,000$"
    ):
        parse("model.head=[4, 0]")
    with pytest.raises(
        UserError, match=r"^settings: model\.head is '3'; accepted: a list of 2 whole numbers from 1 to 1,000,000$"
    ):
        parse("model.head=3")
    channel = {"kind": "position", "side": "border", "num_anchors": 0}
    with pytest.raises(
        UserError, match=r"^mine.toml: channels\[0\]\.num_anchors is 0; accepted: a whole number from 1 to 1,000,000$"
    ):
        parse_recipe({"channels": [channel]}, "mine.toml")


def test_a_channel_is_there_once():
    border, internal = ({"kind": "position", "side": side, "num_anchors": 2} for side in ("border", "internal"))
    assert len(parse_recipe({"channels": [border, internal]}, "mine.toml").channels) == 2
    with pytest.raises(UserError, match=r"^mine\.toml: the channel position/border occurs 2 times; one \[\[channels"):
        parse_recipe({"channels": [border, internal, border | {"num_anchors": 3}]}, "mine.toml")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epoch=5", "settings: unknown setting 'training.epoch'"),
        ("trainig.epochs=5", "settings: unknown setting 'trainig'; accepted: .* did you mean 'training'"),
        ("training.epochs=0", "settings: training.epochs is 0"),
        (" training . epochs = 0", "settings: training.epochs is 0"),
        ("training.schedule=platau", "settings: training.schedule is 'platau'; .* did you mean 'plateau'"),
        ("name.of=x", "settings: name is not a section"),
    ],
)
def test_a_mistake_of_set_is_said_to_be_there(override, message):
    with pytest.raises(UserError, match=f"^{message}"):
        find_recipe("subgnn", ["model.layers=2", override])


def test_a_mistake_of_the_file_is_said_to_be_there(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[training]\nepochs = 0\nlr = 2\n")
    with pytest.raises(UserError) as caught:
        find_recipe(str(file), ["training.lr=1", "model.dropout=0.5"])
    assert str(caught.value).startswith(f"{file}: training.epochs is 0")
    assert find_recipe(str(file), ["training.epochs=3"]).training.epochs == 3


PORTFOLIO = {"method": "auto", "auto": {"candidates": [{"name": "a", "recipe": "bag", "set": ["training.lr=1"]}]}}


def test_settings_of_other_sections_apply_to_every_candidate_of_a_portfolio():
    recipe = parse_recipe(PORTFOLIO, "mine.toml", ["training.epochs=5", "auto.folds=3"])
    assert recipe.auto.folds == 3
    assert recipe.auto.candidates == (CandidateSettings("a", "bag", ("training.lr=1", "training.epochs=5")),)
    assert [(name, one.name, one.method, one.training.epochs) for name, one in portfolio(recipe).items()] == [
        ("a", "a", "bag", 5)
    ]
    assert parse_recipe(recipe.plain(), "again") == recipe


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"only": ["b"]}, "mine.toml: auto.only has 'b'; accepted: a"),
        ({"candidates": [{"name": "a", "recipe": "bag"}] * 2}, "the name 'a' twice"),
        ({"candidates": [{"name": "a/b", "recipe": "bag"}]}, "the name 'a/b'; accepted: a different name"),
        ({"candidates": [{"name": "a"}]}, "has no 'recipe'; needed: name, recipe"),
    ],
)
def test_portfolios_that_are_refused(change, message):
    with pytest.raises(UserError, match=message):
        parse_recipe({"auto": PORTFOLIO["auto"] | change}, "mine.toml")
