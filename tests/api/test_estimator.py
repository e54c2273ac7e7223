"""SubgraphClassifier and SubgraphRegressor, as a notebook and scikit-learn use them."""

import pickle
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import validate_data

from subgnn import Graph, SubgraphClassifier, SubgraphRegressor, to_networkx, to_pyg, to_scipy, train
from subgnn.data.strings import Strings
from subgnn.errors import DataError, DataWarning, UserError
from tests.training.examples import dataset

FAST = {"training.epochs": 3, "embeddings.dim": 4, "model.head": [8, 8]}
BAG = {"bag.normalize": "none", "bag.inverse_penalty": 1.0}
DATA = dataset()
X = [nodes.tolist() for nodes in DATA.subgraphs.nodes]
Y = np.array([DATA.subgraphs.label_text(i) for i in range(len(X))])


def bag(**options):
    return SubgraphClassifier(**{"graph": DATA.graph, "recipe": "bag", "settings": BAG, "device": "cpu"} | options)


@pytest.mark.parametrize("task", ["multi-class", "multi-label"])
def test_a_set_of_subgraphs_with_labels_and_splits(task):
    data = dataset(task)
    model = SubgraphClassifier(data.graph, recipe="structure", settings=FAST).fit(data.subgraphs)
    scores = model.predict_proba(data.subgraphs)
    assert scores.shape == (30, data.subgraphs.num_classes)
    assert model.transform([[0, 1, 2], [5]]).shape[0] == 2
    assert model.classes_.tolist() == list(data.subgraphs.classes)
    assert set(model.run_.result.test)
    assert 0 <= model.score(data.subgraphs) <= 1
    predicted = model.predict(data.subgraphs)
    if task == "multi-class":
        assert list(predicted) == [model.classes_[i] for i in scores.argmax(axis=1)]
    else:
        np.testing.assert_array_equal(predicted, scores > 0.5)


def test_lists_of_nodes_and_labels():
    model = bag().fit(X, Y)
    assert model.run_.result.test == {}  # a fifth selects; nothing is set aside to test on
    assert model.score(X, Y) == model.score(DATA.subgraphs) > 0.5
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(DATA.subgraphs))
    with pytest.raises(DataError, match="score: the subgraphs have no labels"):
        model.score(X)


@pytest.mark.parametrize("labels", [[0, 1, 2], [-5, 10, 2], [10.0, 1.0, 2.0], [False, True, True], ["10", "9", "x-y"]])
def test_classes_are_those_of_y(labels):
    y = np.array(labels)[np.arange(30) % 3]
    model = bag().fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.5
    assert model.score(X, list(y)) == model.score(X, y)


def test_several_labels_as_a_matrix_and_as_lists():
    lists = [["home", f"clique{i % 3}"] if i % 2 else [f"clique{i % 3}"] for i in range(30)]
    by_list = bag().fit(X, lists)
    assert by_list.classes_.tolist() == ["clique0", "clique1", "clique2", "home"]
    matrix = np.array([[c in labels for c in by_list.classes_] for labels in lists], int)
    by_matrix = bag().fit(X, matrix)
    assert by_matrix.classes_.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(by_matrix.predict(X), by_list.predict(X))
    assert by_matrix.score(X, matrix) == by_list.score(X, lists) == by_list.score(X, matrix)
    column = np.empty(30, object)
    column[:] = lists
    assert bag().fit(X, column).classes_.tolist() == by_list.classes_.tolist()
    assert cross_val_predict(bag(), X, matrix, cv=2).shape == (30, 4)


def test_regression():
    y = np.array([2.5 * (i % 3) - 1 for i in range(30)])
    model = SubgraphRegressor(DATA.graph, recipe="bag", device="cpu").fit(X, y)
    assert model.predict(X).shape == (30,)
    assert model.score(X, y) > 0.9
    assert cross_val_score(model, X, y, cv=2).shape == (2,)
    data = dataset("regression")
    again = SubgraphRegressor(data.graph, recipe="bag", device="cpu").fit(data.subgraphs)
    assert again.score(data.subgraphs) == pytest.approx(again.run_.evaluate(data.subgraphs)["r2"], abs=1e-4)
    for wrong in ([np.nan] * 30, [np.inf] * 30):
        with pytest.raises(ValueError, match="Input y contains NaN or infinity"):
            model.fit(X, wrong)


def test_cross_validation_takes_lists_and_sets():
    by_list = cross_val_score(bag(), X, Y, cv=3)
    np.testing.assert_array_equal(cross_val_score(bag(), DATA.subgraphs, Y, cv=3), by_list)
    objects = np.empty(len(X), object)
    objects[:] = X
    np.testing.assert_array_equal(cross_val_score(bag(), objects, Y, cv=3), by_list)


def test_grid_search_and_pipeline():
    grid = GridSearchCV(bag(), {"settings": [BAG, {**BAG, "bag.inverse_penalty": 100.0}]}, cv=2).fit(X, Y)
    assert grid.best_estimator_.score(X, Y) > 0.5
    without_last = FunctionTransformer(lambda sets: [nodes[:-1] for nodes in sets])
    piped = make_pipeline(without_last, bag(), LogisticRegression()).fit(X, Y)
    assert set(piped.predict(X[:4])) <= set(Y)
    assert piped[1].predict_proba(X).shape == (30, 3)


def test_parameters():
    model = bag(random_state=7)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.graph is model.graph  # which is immutable, and may be large
    assert again.set_params(random_state=8).random_state == 8
    with pytest.raises(NotFittedError):
        model.predict([[0]])
    assert "SubgraphClassifier(" in repr(model)
    assert SubgraphClassifier().get_params()["recipe"] == "auto"


def test_the_same_random_state_predicts_the_same():
    options = {"recipe": "structure", "settings": FAST}
    a, b = (bag(**options, random_state=2).fit(DATA.subgraphs) for _ in range(2))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    seeds = [bag(random_state=np.random.RandomState(1)).fit(X, Y).run_.result.seed for _ in range(2)]
    assert seeds[0] == seeds[1] > 0
    assert bag(random_state=None).fit(X, Y).run_.result.seed >= 0


def test_a_fitted_estimator_is_pickled():
    model = bag().fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.run_.classes == model.run_.classes
    assert pickle.loads(pickle.dumps(bag())).get_params()["recipe"] == "bag"


def test_graphs_of_other_libraries_and_a_table_of_edges(tmp_path):
    tails, heads, _ = DATA.graph.edges()
    path = tmp_path / "edges.csv"
    path.write_text("u,v\n" + "".join(f"{u},{v}\n" for u, v in zip(tails, heads, strict=True)))
    expected = bag().fit(X, Y).predict_proba(X)
    for graph in (path, *(convert(DATA.graph) for convert in (to_networkx, to_pyg, to_scipy))):
        np.testing.assert_array_equal(bag(graph=graph).fit(X, Y).predict_proba(X), expected)


def test_nodes_are_names_wherever_the_graph_has_them():
    club = nx.relabel_nodes(nx.karate_club_graph(), lambda n: 100 - n)  # whose rows are not its numbers
    sets, y = [[n, *club[n]] for n in club], [club.nodes[n]["club"] for n in club]
    model = bag(graph=club).fit(sets, y)
    by_text = model.predict_proba([[str(n) for n in nodes] for nodes in sets])
    np.testing.assert_array_equal(model.predict_proba(sets), by_text)
    with pytest.raises(DataError, match="subgraphs: node '3' is not in the graph"):
        model.predict([[3]])


def test_node_features_stand_in_for_embeddings():
    graph = replace(DATA.graph, features=np.random.default_rng(0).normal(size=(24, 3)), known_hash="")
    model = SubgraphClassifier(graph, recipe="structure", settings=FAST | {"embeddings.features": "instead"})
    model.fit(DATA.subgraphs)
    assert model.run_.predictor.checkpoint.weights["feature_map.weight"].shape == (4, 3)
    assert np.isfinite(model.predict_proba([[0, 1], [23]])).all()


@pytest.mark.parametrize(
    ("model", "given", "error", "message"),
    [
        (bag(), (DATA.graph, DATA.subgraphs), UserError, r"fit: the graph is given to fit; write SubgraphClassifier\("),
        (bag(graph=None), (X, Y), DataError, "graph: no graph; accepted: a Graph"),
        (bag(graph="bag"), (X, Y), DataError, "graph: 'bag' is a recipe; write recipe='bag'"),
        (bag(settings={"training.epoch": 3}), (X, Y), UserError, "unknown setting 'training.epoch'"),
        (bag(time="5m"), (X, Y), UserError, "the recipe bag has no time budget"),
        (bag(), (X, None), ValueError, "requires y to be passed"),
        (bag(), (X[:2], Y[:2]), ValueError, "n_samples = 2, but at least 3 are needed"),
        (bag(), (X, np.linspace(0, 1, 30)), ValueError, "Unknown label type: continuous"),
        (bag(), (X, ["one"] * 30), ValueError, "needs at least two classes, but y has one class"),
        (bag(), ([*X[:-1], []], Y), DataError, "subgraphs: row 30: empty subgraph"),
        (bag(), ([*X[:-1], [24]], Y), DataError, "node '24' is not in the graph"),
        (bag(), (["a", "b"], [0, 1]), DataError, r"row 1: a single node \('a'\) is not a subgraph; a list of nodes"),
    ],
)
def test_what_does_not_fit_is_said(model, given, error, message):
    with pytest.raises(error, match=message):
        model.fit(*given)


def sets_of(numbers):
    """A set of nodes for each row of numbers: of 32 nodes a column, the one that the number falls on."""
    rows = np.floor(np.asarray(numbers, float) * 4).astype(int) % 32
    return (rows + 32 * np.arange(rows.shape[1])).tolist()


class Numbers:
    """An estimator of rows of numbers, each taken for a set of nodes: what scikit-learn's checks can be run on."""

    def fit(self, X, y=None):
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=isinstance(self, SubgraphRegressor))
        vars(self).pop("run_", None)
        return super().fit(sets_of(X), y)

    def _query(self, X, graph):
        if hasattr(self, "run_"):
            X = sets_of(validate_data(self, X, reset=False))
        return super()._query(X, graph)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class NumbersClassifier(Numbers, SubgraphClassifier): ...


class NumbersRegressor(Numbers, SubgraphRegressor): ...


LINE = Graph.from_edges(np.arange(1999), np.arange(1, 2000))
SKIPPED = {
    "check_array_api_input": "scikit-learn runs it only with SCIPY_ARRAY_API",
    "check_classifiers_multilabel_output_format_decision_function": "there is no decision_function",
}


def checks():
    for kind in (NumbersClassifier, NumbersRegressor):
        made = kind(LINE, recipe="bag", settings=BAG, device="cpu")
        for model, check in estimator_checks_generator(made, legacy=True):
            name = getattr(check, "func", check).__name__
            if name not in SKIPPED and not getattr(check, "keywords", {}).get("readonly_memmap"):
                yield pytest.param(model, check, id=f"{kind.__name__}-{name}")


@pytest.mark.quick(38)
@pytest.mark.parametrize(("model", "check"), list(checks()))
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(model, check):
    check(model)


def test_labels_come_from_a_frame_a_list_of_sets_or_a_series_that_keeps_its_names():
    names = [f"s{i}" for i in range(len(X))]
    named = replace(DATA.subgraphs, names=Strings.of(names))
    series, wide = pd.Series(X, index=names), pd.DataFrame({"name": names, "nodes": X, "label": Y})
    long = wide.explode("nodes").rename(columns={"nodes": "node"})
    expected = bag().fit(series, Y)
    assert expected.run_._opened.subgraphs.names[:3] == names[:3]
    assert list(expected.run_.predict(series.iloc[:2])["name"]) == names[:2]
    for given in (wide, long, [named[:20], named[20:]]):
        model = bag().fit(given)
        assert model.predict(X).tolist() == expected.predict(X).tolist()
        assert model.score(given) == expected.score(series, Y)


def test_messages_name_arguments_and_warnings_the_line_of_the_caller():
    with pytest.raises(UserError, match=r"^time: the recipe bag has no time budget"):
        train(DATA, recipe="bag", time=5)
    with pytest.warns(DataWarning, match="pass repeated='sum'") as told:
        Graph.from_edges([0, 1], [1, 0], weights=[1, 2])
    assert {one.filename for one in told} == {__file__}
