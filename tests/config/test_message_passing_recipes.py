"""The recipes glass_* and ssnp_* are the settings that their authors published, value for value."""

from __future__ import annotations

import pytest

from subgnn.config.recipes import recipe_names
from subgnn.models.peers.message_passing import MessagePassingSettings
from subgnn.models.recipes import find_recipe

# aggregation, batch, layers, dropout, width, rate, pooling, factor of the rate, ratio of labels
GLASS = """\
ppi_bp mean 80 2 .5 64 5e-4 sum .2 .95
hpo_metab gcn 59 1 .5 64 1e-3 sum .2 .55
hpo_neuro gcn 99 2 .5 64 2e-3 sum .2 .85
em_user gcn 6 1 .5 64 1e-3 size .7 .75
density sum 2 1 0 8 1e-3 size .9 1.0
cut_ratio sum 3 1 .3 8 1e-2 mean .9 .75
coreness sum 2 2 .05 20 6.7e-3 mean .9 1
component sum 8 1 0 17 1e-3 sum .7 .9
"""
# aggregation, batch, layers, dropout, rate, pooling, factor of the rate, steps of a walk, walks
SSNP = """\
ppi_bp mean 1000 2 .5 5e-4 sum .2 8 1
hpo_metab gcn 1000 1 .5 1e-3 size .2 1 1
hpo_neuro mean 1000 1 .5 2e-3 size .2 1 1
em_user gcn 50 1 .5 1e-3 size .7 1 5
"""
SYNTHETIC = ("density", "cut_ratio", "coreness", "component")


def plain(kind: str) -> str:
    return kind.replace("gcn", "symmetric")


@pytest.mark.parametrize("line", GLASS.splitlines(), ids=lambda line: line.split()[0])
def test_glass(line):
    name, kind, batch, layers, dropout, width, rate, pool, factor, ratio = line.split()
    found = find_recipe(f"glass_{name}")
    messages = found.of(MessagePassingSettings)
    assert found.method == "glass"
    assert (messages.adjacency, messages.pool) == (plain(kind), pool)
    assert (found.training.batch_size, found.model.layers, found.embeddings.dim) == (
        int(batch),
        int(layers),
        int(width),
    )
    assert (found.model.dropout, found.training.lr) == (float(dropout), float(rate))
    assert (found.training.plateau_factor, messages.ratio) == (float(factor), float(ratio))
    assert (messages.inputs == "constant") == (name in SYNTHETIC)
    assert (found.embeddings.source == "gin") == (name not in SYNTHETIC)
    assert 0 < found.published["micro_f1"] <= 1


@pytest.mark.parametrize("line", SSNP.splitlines(), ids=lambda line: line.split()[0])
def test_ssnp(line):
    name, kind, batch, layers, dropout, rate, pool, factor, steps, walks = line.split()
    found = find_recipe(f"ssnp_{name}")
    messages = found.of(MessagePassingSettings)
    assert found.method == "ssnp"
    assert (messages.adjacency, messages.pool) == (plain(kind), pool)
    assert (found.training.batch_size, found.model.layers, found.embeddings.dim) == (int(batch), int(layers), 64)
    assert (found.model.dropout, found.training.lr) == (float(dropout), float(rate))
    assert (found.training.plateau_factor, found.training.select_from) == (float(factor), 50)
    assert (messages.walk_length, messages.walks) == (int(steps), int(walks))


@pytest.mark.parametrize(("method", "table"), [("glass", GLASS), ("ssnp", SSNP)])
def test_there_is_no_other(method, table):
    published = {f"{method}_{line.split()[0]}" for line in table.splitlines()}
    assert {name for name in recipe_names() if name.startswith(f"{method}_")} == published


@pytest.mark.parametrize("name", [name for name in recipe_names() if name.startswith(("glass", "ssnp"))])
def test_training_is_as_published(name):
    training = find_recipe(name).training
    assert (training.epochs, training.schedule, training.plateau) == (300, "plateau", "train loss")
    messages = find_recipe(name).of(MessagePassingSettings)
    assert (messages.training_labels, messages.labelled_together) == ("batch", 1)
