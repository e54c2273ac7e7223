"""Suite files: those of the package are sound, and mistakes in one's own are told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from subgnn.config.settings import Recipe
from subgnn.errors import UserError
from subgnn.lab.datasets.catalog import CATALOG
from subgnn.lab.suites import suite_names
from subgnn.lab.suites.run import Request, _locate, plan_jobs
from subgnn.lab.suites.spec import find_suite, with_split
from tests.lab.suites.examples import tiny
from tests.training.examples import dataset as cliques


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", suite_names())
def test_every_recipe_of_a_suite_builds(name):
    suite = find_suite(name)
    for dataset in suite.datasets:
        if name == "subgraphbench":  # its datasets are given
            assert not dataset.generate
            for model in suite.models:
                assert isinstance(suite.recipe(model, dataset.name), Recipe)
            continue
        assert suite.like(dataset.name) in CATALOG
        assert dataset.generate in ("", suite.like(dataset.name))
        # The published instances of synthetic datasets are given, not generated.
        instance = dataset.name.startswith("glass-")
        generated = CATALOG[suite.like(dataset.name)].kind == "synthetic" and not instance
        assert bool(dataset.generate) == generated
        if next(d for d in suite.datasets if suite.like(d.name) == suite.like(dataset.name)) is not dataset:
            continue  # it has the recipes of an earlier one
        for model in suite.models:
            assert isinstance(suite.recipe(model, dataset.name), Recipe)


@pytest.mark.parametrize("name", ["synthetic", "real", "ablation"])
def test_published_numbers_are_those_of_the_recipes_with_their_embeddings(name):
    suite = find_suite(name)
    for dataset in suite.datasets:
        for model in suite.models:
            recipe, published = suite.recipe(model, dataset.name), model.published
            if recipe.method in ("subgnn", "auto"):
                known = suite.like(dataset.name)
                found = (published.micro_f1.get(known), published.micro_f1_std.get(known))
                assert found == (recipe.published.get("micro_f1"), recipe.published.get("std"))
            if recipe.published:
                assert recipe.published["source"].rpartition(" with ")[2] in published.source
            for table in (model.published.micro_f1, model.published.auroc):
                assert all(0 < number < 1 for number in table.values())
                assert not table or set(table) == {suite.like(d.name) for d in suite.datasets}
            assert bool(model.published.source) == bool(model.published.micro_f1)


def test_the_paper_s_ppi_bp_has_both_splits(tmp_path):
    suite = find_suite("real")
    names = ["ppi-bp-paper", "ppi-bp-published"]
    specs = [next(d for d in suite.datasets if d.name == name) for name in names]
    assert _locate(suite, {names[0]: tmp_path}, names, tmp_path) == [(spec, tmp_path) for spec in specs]
    bag = [model for model in suite.models if model.label == "bag"]
    data = cliques()
    data = replace(data, subgraphs=replace(data.subgraphs, splits=np.repeat([0, 1, 2], [15, 5, 10]).astype(np.int8)))
    (a,), (b,) = (plan_jobs(suite, d, tmp_path, data, models=bag, request=Request(1)) for d in specs)
    assert a["key"] != b["key"]
    assert (a["split"], b["split"]) == ("stored", "published")
    (folds,) = plan_jobs(suite, specs[1], tmp_path, data, models=bag, request=Request(1, split="folds"))
    assert folds["split"] == "folds"
    given, swapped = data.subgraphs, with_split(data, "published", 0).subgraphs
    for ours, theirs in (("train", "train"), ("val", "test"), ("test", "val")):
        assert swapped.indices(ours).tolist() == given.indices(theirs).tolist()
    assert suite.recipe(suite.models[0], "ppi-bp-published") == suite.recipe(suite.models[0], "ppi-bp")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": []}, r"here: unknown setting 'model'; accepted: name, title, .*'models'"),
        ({"datasets": [{"name": "a", "generate": "densty"}]}, "unknown generator 'densty'; accepted: density"),
        ({"models": [{"label": "a", "recipe": "bag"}] * 2}, "the model 'a' occurs twice"),
        ({"compare": ["bags"]}, "compare: unknown model 'bags'; accepted: SubGNN, bag, avg; did you mean 'bag'"),
        ({"models": []}, "there is no model"),
        ({"datasets": [{"name": "b", "folder_of": "c"}]}, "'b' has the folder of 'c'; accepted: b"),
        *(
            ({"datasets": [{"name": name, "generate": "density"}]}, "a dataset has the name")  # it names a folder
            for name in ("../elsewhere", "/tmp/x", "..", "a/b", "a=b", "", "a\nb")
        ),
    ],
)
def test_mistakes(changes, message):
    with pytest.raises(UserError, match=message):
        tiny(**changes)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ({"recipe": "avg", "tune": [["training.lrr=1"]]}, "", r"tune_settings: 'training.lrr=1'; .*did you mean"),
        ({"recipe": "avg", "tune": [["training.lr=fast"]]}, "", "training.lr is 'fast'; accepted: a number"),
        ({"recipe": "avg", "tune": [["embeddings.dim=8"]]}, "", "'embeddings.dim=8'; accepted: training.lr"),
        ({"recipe": "bag", "tune": [["training.lr=1"]]}, "", "the method is bag; accepted for avg"),
        ({"recipe": "structure"}, "channels.position=3", "no channel 'position'; the recipe has structure/internal"),
        ({"recipe": "structure"}, "channels.structure=0", "num_anchors is 0; accepted: a whole number from 1"),
    ],
)
def test_mistakes_in_a_model(model, change, message):
    suite = tiny(models=[{"label": "a", **model}])
    with pytest.raises(UserError, match=message):
        suite.recipe(suite.models[0], "cliques", [change] if change else [])


def test_recipes_beside_ones_own_suite(tmp_path):
    (tmp_path / "mine.toml").write_text('method = "bag"\n')
    (tmp_path / "suite.toml").write_text(
        'title = "Mine"\n[[datasets]]\nname = "a"\n[[models]]\nlabel = "m"\nrecipe = "mine.toml"\n'
    )
    suite = find_suite(str(tmp_path / "suite.toml"))
    assert (suite.name, suite.protocol.seeds, suite.protocol.split) == ("suite", 10, "random")
    assert suite.recipe(suite.models[0], "a").name == "mine"


def test_a_key_is_another_for_other_settings():
    data, suite = cliques(), tiny()

    def jobs(*overrides):
        return plan_jobs(suite, suite.datasets[0], Path(), data, models=suite.models, request=Request(2, overrides))

    changes = [(), ("training.members=2",), ("model.hidden_norm=batch",), ("prepare.border_anchors=heaviest",)]
    keys = [job["key"] for change in changes for job in jobs(*change)]
    assert len(set(keys)) == len(keys) == 2 * len(changes) * len(suite.models)
