"""Train a model in Python, or open one, then predict, embed, search, explain, complete and evaluate."""

import shutil
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from pandas import DataFrame, Index

from subgnn.api.inputs import Settings, Subgraphs, as_graph, as_members, as_recipe
from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.api.train_recipe import train as train_recipe
from subgnn.api.train_recipe import write_run_page
from subgnn.api.update import update_run
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.format import ReadOptions, Unknown
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.read_tables import match_nodes
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError, warn
from subgnn.inference.answers import AnswerTable, Query, vector_table
from subgnn.inference.complete import Completer, completion_table, read_candidates
from subgnn.inference.explain import Explainer
from subgnn.inference.explanation import Explanation
from subgnn.inference.open import OpenedRun, export_run, fit_without_labels, open_run, score
from subgnn.inference.options import PredictOptions
from subgnn.inference.predictions import prediction_table
from subgnn.inference.predictor import Predictor, pooled
from subgnn.inference.search import By, KnownSubgraphs, SearchOptions, search_table
from subgnn.metrics.thresholds import threshold_notes
from subgnn.models.recipes import unused_line
from subgnn.parallel.engine import Engine
from subgnn.ragged import Ragged
from subgnn.render import render, write_page
from subgnn.reports.drawing import Picture, picture
from subgnn.reports.drawing import draw as draw_subgraph
from subgnn.reports.run_page import model_card, score_text
from subgnn.storage.files import temporary_folder
from subgnn.task import TaskName, metric_name
from subgnn.training.options import TrainOptions
from subgnn.training.run_dir import PAGE, check_early


class Run:
    """A trained model and its results; :func:`train` and :func:`load` make one.

    Subgraphs are given as lists of nodes, names with lists of nodes, a data frame or the path of a table, long or wide,
    or a :class:`~subgnn.data.subgraphs.SubgraphSet`. Nodes that are not in the graph are an error, or are left out with
    ``unknown="drop"``.

    Attributes:
        path: the folder of the run, or the exported file.
        result: scores, settings and times, as in run.json (:class:`~subgnn.result.RunResult`).
        predictor: the model itself, for arrays in place of tables.
    """

    def __init__(self, path: Path, opened: OpenedRun) -> None:
        self.path, self.result, self.predictor = path, opened.result, opened.predictor
        self._opened = opened
        self._completer: Completer | None = None

    @property
    def task(self) -> TaskName:
        """The task: binary, multi-class, multi-label or regression."""
        return self.predictor.spec.task

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes; none for regression."""
        return self.predictor.spec.classes

    @property
    def graph(self) -> Graph:
        """The graph that the model was trained on, without orientations."""
        return self.predictor.graph

    @with_options(PredictOptions)
    def predict(
        self, subgraphs: Subgraphs, *, options: PredictOptions, unknown: Unknown = "error", engine: Engine | None = None
    ) -> DataFrame:
        """Label and class probabilities of each subgraph, or its value, as ``subgnn predict`` writes them.

        Args:
            engine: its workers (:func:`~subgnn.parallel.cluster.open_engine`) share the work on thousands of subgraphs.
        """
        predictor = pooled(self.predictor, engine)
        return answer_frame(prediction_table(predictor, as_query(subgraphs, self.graph, unknown), options))

    def embed(self, subgraphs: Subgraphs, *, unknown: Unknown = "error") -> DataFrame:
        """The vector of each subgraph: a row each, with the name of the subgraph as index."""
        return vector_frame(self.predictor, as_query(subgraphs, self.graph, unknown))

    def search(
        self,
        subgraphs: Subgraphs,
        *,
        top: int = 10,
        by: By = "place",
        include_test: bool = False,
        unknown: Unknown = "error",
    ) -> DataFrame:
        """The known subgraphs nearest to each, as ``subgnn search`` writes them: a row for each that is found.

        They are the run's training, validation and, with ``include_test``, test subgraphs; nearest ``by`` ``place``,
        the same part of the graph; ``nodes``, shared nodes; or ``class``, the vectors of the run.
        """
        options = SearchOptions(top, include_test, by)
        query = as_query(subgraphs, self.graph, unknown).as_of(self.predictor.as_of_step)
        return answer_frame(search_table(self._known, query, options))

    @cached_property
    def _known(self) -> KnownSubgraphs:
        return KnownSubgraphs(self.predictor, self._opened.subgraphs)

    def explain(
        self, subgraphs: Subgraphs, *, max_nodes: int = 500, max_anchors: int = 100, unknown: Unknown = "error"
    ) -> list[Explanation]:
        """Contributions of nodes, components, channels and the most important anchors to each prediction.

        Subgraphs of more than ``max_nodes`` nodes have no contributions of single nodes.
        """
        explainer = Explainer.of_run(self._opened, max_nodes=max_nodes, max_anchors=max_anchors)
        return explainer.explain(self._rows(subgraphs, unknown))

    def complete(
        self,
        subgraphs: Subgraphs,
        *,
        top: int = 20,
        among: Iterable[Any] | str | Path | None = None,
        unknown: Unknown = "error",
    ) -> DataFrame:
        """Nodes that are missing in each subgraph, with the probability that they belong, as ``subgnn complete`` does.

        ``among`` restricts suggestions to these nodes: a list, or the path of a text file with one per line.
        """
        if top < 1:
            raise UserError(f"cannot suggest {top} nodes", where="top", hint="accepted: 1 or more")
        query, nodes = as_query(subgraphs, self.graph, unknown), None
        if among is not None:
            source = Path(among) if isinstance(among, str) else among
            nodes = read_candidates(source, self.graph, ReadOptions(unknown=unknown))
        if self._completer is None:
            self._completer = Completer.of_run(self._opened, str(self.path))
        return answer_frame(completion_table(self._completer, query, top=top, among=nodes))

    def evaluate(self, subgraphs: str | SubgraphSet = "test") -> dict[str, float]:
        """Metrics on a split of the run's dataset, as it was in training, or on labelled subgraphs.

        Of ``val``, a run that was fitted to it gives its out-of-fold metrics, with a warning.
        """
        if isinstance(subgraphs, str):
            if self._opened.out_of_fold(subgraphs):
                return {name: float(value) for name, value in self.result.val.items()}
            subgraphs = self._opened.split(subgraphs, str(self.path))
        return score(self.predictor, subgraphs, select_by=self.result.select_by, where=str(self.path))[0]

    def update(self, graph: Any, out: str | Path, *, subgraphs: Source | None = None) -> "Run":
        """Fit the chosen models again on a graph that has grown, as ``subgnn update`` does, and open the new run.

        The graph is given as in :func:`load`; ``subgraphs`` is a table with further labelled ones.
        """
        update_run(self.path, _as_given(graph), Path(out), subgraphs=subgraphs)
        return load(out)

    @property
    def leaderboard(self) -> DataFrame:
        """The candidates of a portfolio, the best first: out-of-fold score with its interval, seconds, weight, note."""
        if not self.result.is_portfolio:
            what = f"this run trained a single recipe ({self.result.recipe}), so it has no leaderboard"
            raise UserError(what, where="leaderboard", hint="train without a recipe to compare several")
        return DataFrame(map(asdict, self.result.leaderboard))

    @property
    def report(self) -> Path:
        """The page of the run, which is written where it is missing."""
        page, subgraphs, graph = self.path / PAGE, self._opened.subgraphs, self.graph
        if not page.is_file():
            if subgraphs is None or not self.path.is_dir():
                raise UserError("an exported run has no page", where=str(self.path), hint="open the folder of the run")
            write_run_page(Dataset(self.result.dataset, graph.oriented or graph, subgraphs), self.path, None)
        return page

    def export(self, out: str | Path, *, with_graph: bool = True, overwrite: bool = False) -> Path:
        """Write the model as one file, which :func:`load` opens anywhere, and return its path.

        Its model card is written beside it. Without the graph in it, ``load`` needs ``data``.
        """
        export_run(self._opened, Path(out), with_graph=with_graph, overwrite=overwrite)
        write_page(model_card(self.result), Path(out).with_suffix(".card.md"), overwrite=overwrite)
        return Path(out)

    def draw(self, nodes: Iterable[Any], *, explain: bool = False, neighbors: int = 30) -> Picture:
        """A drawing of one subgraph, its neighbours and the model's anchors, which a notebook shows.

        Args:
            explain: ring nodes by their contribution to the predicted class.
            neighbors: how many nodes to draw besides those of the subgraph.
        """
        rows = self._rows(nodes if isinstance(nodes, SubgraphSet) else [nodes], "error")
        drawing = draw_subgraph(self.predictor, rows[0], most=neighbors)
        return picture(drawing, self.explain(rows)[0] if explain else None)

    def _rows(self, subgraphs: Subgraphs, unknown: Unknown) -> Ragged:
        return as_query(subgraphs, self.graph, unknown).as_of(self.predictor.as_of_step).matched.nodes

    def _scores(self, split: str, *names: str) -> str:
        scores = self.result.scores(split)
        shown = {name: value for name, value in scores.items() if (name in names if names else name != "loss")}
        return ", ".join(f"{metric_name(name)} {score_text(value, name)}" for name, value in shown.items())

    def __repr__(self) -> str:
        scores = {split: self._scores(split, "micro_f1", "r2") for split in ("test", "val")}
        found = [f"{self.result.scores_name(split)} {text}" for split, text in scores.items() if text]
        about = f"{self.result.recipe} on {self.result.dataset}"
        return f"Run({', '.join([about, *found[:1], f'path={str(self.path)!r}'])})"

    def _repr_html_(self) -> str:
        result = self.result
        facts: list[tuple[str, str]] = [("task", self.task)]
        if self.classes:
            facts.append(("classes", f"{len(self.classes):,}: {', '.join(self.classes[:10])}"))
        facts += [(result.scores_name(split), text) for split in ("test", "val") if (text := self._scores(split))]
        if result.is_portfolio:
            members = [f"{row.name} {row.weight:.2f}" for row in result.leaderboard if row.weight]
            facts += [("chosen", f"{result.chosen}: {', '.join(members)}"), ("labels", result.signal)]
        facts += [("seed", str(result.seed)), ("date", result.date), ("path", str(self.path))]
        return render("card.html", title=f"{result.recipe} on {result.dataset}", facts=facts)

    def __reduce__(self) -> tuple[Callable[[bytes], "Run"], tuple[bytes]]:
        """For pickle: the exported file, which is checked when it is opened as any other."""
        with temporary_folder("subgnn-export") as folder:
            return _opened_again, (self.export(folder / "run.safetensors").read_bytes(),)


def _opened_again(content: bytes) -> Run:
    with temporary_folder("subgnn-export") as folder:
        path = folder / "run.safetensors"
        path.write_bytes(content)
        return Run(path, open_run(path))


@with_options(TrainOptions)
def train(
    data: Dataset | str | Path,
    out: str | Path | None = None,
    *,
    recipe: str | Path | Recipe = "auto",
    settings: Settings = (),
    options: TrainOptions,
    report: bool = True,
    progress: bool | None = None,
) -> Run:
    """Train on a dataset: the best model that a portfolio of recipes finds, or the recipe that is named.

    All options of ``subgnn train`` (:class:`~subgnn.training.options.TrainOptions`) are keywords. Graph attributes that
    the recipe ignores, such as weights, are named in a warning.

    Args:
        data: a dataset (:func:`~subgnn.data.read_tables.read_tables`), or the path of a folder or bundle.
        out: the folder of the run; by default it is temporary and removed with the :class:`Run`.
        recipe: the name of a recipe, or a .toml file.
        settings: overrides, such as ``{"training.epochs": 5}``.
        report: write the page of the run; without a folder it is written when :attr:`Run.report` is asked for.
        progress: show a progress bar; by default in a terminal and in a notebook.
    """
    chosen = as_recipe(recipe, settings)
    source = "" if isinstance(data, Dataset) else str(Path(data).resolve())
    if out is not None:
        check_early(options, Path(out))
    dataset = data if isinstance(data, Dataset) else read_dataset(data)
    if line := unused_line(chosen, dataset.graph, dataset.subgraphs):
        warn(line)
    folder = Path(mkdtemp(prefix="subgnn-"), "run") if out is None else Path(out)
    epochs, pretraining = chosen.training.epochs, chosen.pretrain.epochs
    with ExitStack() as temporary, progress_bar(epochs, pretraining, quiet=True, shown=progress) as bar:
        if out is None:
            temporary.callback(shutil.rmtree, folder.parent, ignore_errors=True)
        kept = {"keep_data": not source and out is not None, "report": report and out is not None}
        told = asdict(options) | {"source": source, "callbacks": bar.callbacks()}
        result = train_recipe(dataset, chosen, folder, **kept, **told)
        for line in [] if result.threshold is None else threshold_notes(result.threshold):
            warn(line)
        run = load(folder, dataset)
        weakref.finalize(run, temporary.pop_all().close)
    return run


def load(path: str | Path, data: Dataset | str | Path | None = None, *, graph: Any = None) -> Run:
    """Open a finished run: its folder, or a file that :meth:`Run.export` or ``subgnn export`` wrote.

    Args:
        data: the dataset or its path; by default the one that the run was trained on, or the graph in the file.
        graph: another graph to answer on, such as one that has grown: of this library or another one, a dataset, a
            table of edges, or the path of any of them. A warning says how it differs.
    """
    given = None if graph is None else _as_given(graph)
    opened = open_run(Path(path), Path(data) if isinstance(data, str) else data, graph=given)
    if opened.match is not None:
        warn("; ".join(opened.match.lines))
    return Run(Path(path), opened)


def _as_given(graph: Any) -> Path | Graph:
    if isinstance(graph, (str, Path)):
        return Path(graph)
    return graph.graph if isinstance(graph, Dataset) else as_graph(graph)


def as_query(subgraphs: Subgraphs, graph: Graph, unknown: Unknown) -> Query:
    """Subgraphs in any form, as nodes of the graph."""
    options = ReadOptions(unknown=unknown)
    members = as_members(subgraphs, graph, options)
    matched = match_nodes(members, graph, options)
    matched.warn()
    return Query(members, matched, drops=unknown == "drop")


def answer_frame(table: AnswerTable) -> DataFrame:
    """A table of answers as a data frame."""
    parts, titles = list(table.parts), [column.title for column in table.columns]
    return DataFrame({title: [value for part in parts for value in part[i]] for i, title in enumerate(titles)})


def vector_frame(predictor: Predictor, query: Query) -> DataFrame:
    """Vectors of subgraphs: a row each, with the name of the subgraph as index."""
    vectors = np.concatenate([np.asarray(part[1]) for part in vector_table(predictor, query).parts])
    return DataFrame(vectors, index=Index(list(query.members.names), name="subgraph"))


def draw(graph: Any, nodes: Iterable[Any], *, neighbors: int = 30) -> Picture:
    """A drawing of one subgraph and its neighbours, which a notebook shows; :meth:`Run.draw` adds those of a model.

    The graph is one of this library or another one, a dataset, a table of edges, or the path of any of them.
    """
    found = (graph.graph if isinstance(graph, Dataset) else as_graph(graph, datasets=True)).undirected()
    (row,) = as_query([list(nodes)], found, "error").matched.nodes
    return picture(draw_subgraph(found, row, most=neighbors))


def embed_subgraphs(
    graph: Any,
    subgraphs: Subgraphs,
    *,
    recipe: str | Path | Recipe = "unsupervised",
    settings: Settings = (),
    seed: int = 0,
    unknown: Unknown = "error",
) -> DataFrame:
    """Vectors of subgraphs without labels: a row each, with the name of the subgraph as index.

    They are fitted to these subgraphs: for vectors of further ones that can be compared with them, keep the model with
    ``subgnn embed --model``, or :func:`train` the recipe.

    Args:
        graph: as in :func:`draw`.
        recipe: ``unsupervised``, or a .toml file.
        settings: overrides, such as ``{"vectors.width": 64}``.

    Example:
        >>> import networkx as nx
        >>> embed_subgraphs(nx.karate_club_graph(), {"a": [0, 1, 2], "b": [32, 33]}).shape
        (2, 256)
    """
    chosen = as_recipe(recipe, settings)
    found = graph.graph if isinstance(graph, Dataset) else as_graph(graph, datasets=True)
    query = as_query(subgraphs, found, unknown)
    query.refuse_empty()
    return vector_frame(fit_without_labels(found, query.matched.nodes, chosen, seed=seed).predictor, query)
