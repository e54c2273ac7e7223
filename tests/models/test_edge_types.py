"""Types of edges in models: views of each type, and the set in which only types carry the label."""

from dataclasses import replace

import numpy as np
import pytest
from examples.planted import generate_planted

from subgnn import Ragged, SubgraphSet
from subgnn.api.train_recipe import train
from subgnn.data.graph import Graph
from subgnn.errors import UserError
from subgnn.inference.predictor import Predictor
from subgnn.models.kernel_machines.rows import view_of
from subgnn.models.kernel_machines.views import DiffusionSettings
from subgnn.models.recipes import check_recipe, find_recipe, portfolio
from subgnn.models.registry import MODELS
from subgnn.parallel.memory import memory_limit
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.portfolio import plan
from subgnn.training.run_dir import CHECKPOINT
from tests.channels.test_diffusion import dense_ratios
from tests.models.examples import training_data
from tests.training.examples import dataset

PLANTED = generate_planted("type-planted", seed=1, num_subgraphs=90, subgraph_size=8, region_size=30)


def test_the_lift_along_a_type_equals_dense_walks():
    graph = Graph.from_edges([0, 0, 1, 2, 3], [1, 1, 2, 3, 4], types=["a", "b", "a", "b", "b"], num_nodes=5)
    nodes = Ragged.from_rows([np.array([0, 1]), np.array([3])])
    settings = DiffusionSettings(damping=0.6, algorithm="exact")
    for kind in "ab":
        found = view_of(graph, nodes, f"lift:{kind}", settings).values
        np.testing.assert_allclose(found, np.log1p(dense_ratios(graph.of_type(kind), nodes, 0.6)), atol=1e-5)


def test_only_types_carry_the_planted_label(tmp_path):
    results = {
        name: train(PLANTED, find_recipe(name), tmp_path / name, device="cpu")
        for name in ("diffusion-types", "diffusion", "bag-1hop")
    }
    assert results["diffusion-types"].test["micro_f1"] >= 0.95
    assert all(results[name].test["micro_f1"] <= 0.75 for name in ("diffusion", "bag-1hop"))
    predictor = Predictor(tmp_path / "diffusion-types" / CHECKPOINT, PLANTED.graph, device="cpu")
    assert predictor.spec.of(DiffusionSettings).views == ("lift:left", "lift:right")
    test = PLANTED.subgraphs.indices("test")
    outputs = predictor.outputs(PLANTED.subgraphs.nodes.take(test))
    assert (outputs.argmax(axis=1) == PLANTED.subgraphs.targets[test]).mean() >= 0.95


def test_the_portfolio_has_candidates_for_types_only_where_there_are_types():
    recipe = find_recipe("auto")
    for data, wanted in ((PLANTED, True), (dataset(), False)):
        recipes = portfolio(recipe, data.graph.attributes)
        names = [row.name for row in plan(recipes, CrossValidation.of(data, recipe.auto, 0), recipe.auto)]
        assert ("diffusion-types" in names) == wanted


@pytest.mark.parametrize(
    ("view", "graph", "message"),
    [
        ("lift:*", dataset().graph, "the edges of the graph have no types"),
        ("lift:lefty", PLANTED.graph, r"has 'lift:lefty'.*left"),
        ("topology:left", PLANTED.graph, "has 'topology:left'"),
    ],
)
def test_views_of_types_that_are_not_there_are_refused(view, graph, message):
    recipe = find_recipe("diffusion", [f'diffusion.views=["{view}"]'])
    with pytest.raises(UserError, match=message):
        check_recipe(recipe, graph)


def test_views_of_more_types_than_fit_in_memory_are_refused():
    ends = np.arange(1800)
    graph = Graph.from_edges(ends, ends + 1, num_nodes=2000, types=(ends % 900).astype(str))
    subgraphs = SubgraphSet.from_lists([[i] for i in range(90)], num_nodes=2000, labels=list("ab") * 45)
    data = training_data(graph, replace(subgraphs, splits=np.zeros(90, np.int8)))
    with memory_limit("1GB"), pytest.raises(UserError, match=r"views of 900 edge types of 90 subgraphs take 0\.7 GB"):
        MODELS["diffusion"].set_up(data, find_recipe("diffusion-types"))
