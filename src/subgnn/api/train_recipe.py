"""Train one run and write its page: the Python function behind ``subgnn train``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from subgnn.config.recipes import find_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.describe import label_notes
from subgnn.data.graph import Graph
from subgnn.data.splits import looks_ahead, named_split, refuse_look_ahead, split_warnings
from subgnn.data.values import parse_time, time_text
from subgnn.errors import DataWarning, UserError
from subgnn.models.registry import model_of
from subgnn.result import RunResult
from subgnn.training.devices import Ranks
from subgnn.training.options import NO_CALLBACKS, Callbacks, RunOptions, TrainedRun, parse_duration
from subgnn.training.run import train_run
from subgnn.training.run_dir import DATASET, PAGE


def train(
    dataset: Dataset,
    recipe: Recipe | None = None,
    out: Path | str = "",
    *,
    time: float | str | None = None,
    threshold: str | None = None,
    seed: int = 0,
    split: str = "stored",
    edges_until: float | str | None = None,
    allow_look_ahead: bool = False,
    device: str = "auto",
    ranks: Ranks | None = None,
    resume: bool = False,
    source: str = "",
    keep_data: bool = False,
    cache: bool = True,
    callbacks: Callbacks = NO_CALLBACKS,
    loggers: Sequence[str] = (),
    score_epochs: bool = False,
    report: bool = True,
) -> RunResult:
    """Train a recipe on a dataset and write the run's folder.

    Args:
        recipe: by default ``auto``, the best model that a portfolio of recipes finds.
        out: the folder of the run.
        time: the budget of a portfolio, in seconds or as ``"5m"``; by default that of the recipe (``auto.time``).
        threshold: the aim by which the threshold of the rarer of two classes, or of each of several labels, is chosen,
            as ``"precision=0.9"`` (:mod:`subgnn.metrics.thresholds`); by default that of the recipe
            (``training.threshold``).
        seed: of anchors, weights, batches and dropout.
        split: of the dataset, by its name (:func:`~subgnn.data.splits.named_split`), and what ``evaluate`` then uses.
        edges_until: leave out edges that are later than this time, a number or a date in ISO 8601; predictions of the
            run leave them out, too.
        allow_look_ahead: train although the split is by time and edges are later than the first subgraph of val and
            test, which is refused otherwise.
        device: ``auto``, ``cpu`` or ``cuda``.
        ranks: the ranks that torchrun started this process among (:func:`~subgnn.training.devices.current_ranks`); N of
            them at batches of b do what one does at N x b. None trains in this process alone.
        resume: continue a run that was interrupted; its recipe, seed and number of ranks must be the same.
        source: where the dataset was read from, stored so that ``predict`` finds the graph.
        keep_data: store the dataset in the run's folder, so that the run needs no other file.
        cache: read prepared subgraphs and pretrained embeddings from the cache, and write them there.
        callbacks: called as the run progresses.
        loggers: of ``tensorboard``, ``mlflow`` and ``wandb``, those to log to (:mod:`subgnn.training.logs`).
        score_epochs: score every epoch on test, too, into metrics.jsonl. Nothing is selected by it: it is for
            comparisons with published rules of selection (:mod:`subgnn.lab.suites.published_rules`).
        report: write the page of the run.

    Returns:
        The result, on every rank.
    """
    recipe = find_recipe("auto") if recipe is None else recipe
    if not str(out):
        raise UserError("no folder is given", where="out", hint="name the folder of the run, as out='runs/first'")
    recipe = _with_options(recipe, time, threshold)
    until = None if edges_until is None else parse_time(str(edges_until), "--edges-until")
    dataset = replace(dataset, subgraphs=named_split(dataset.subgraphs, split))
    if until is not None:
        dataset = replace(dataset, graph=_graph_until(dataset.graph, until))
    if not allow_look_ahead:
        refuse_look_ahead(dataset.graph, dataset.subgraphs)
    options = RunOptions(
        recipe,
        Path(out),
        seed=seed,
        split=split,
        device=device,
        resume=resume,
        source=str((Path(out) / DATASET).resolve()) if keep_data else source,
        keep_data=keep_data,
        cache=cache,
        loggers=tuple(loggers),
        score_epochs=score_epochs,
        write_page=write_run_page if report else None,
        edges_until=until,
        look_ahead=looks_ahead(dataset.graph, dataset.subgraphs),
        callbacks=callbacks,
    )
    found = [*label_notes(dataset.subgraphs), *map("; ".join, split_warnings(dataset.subgraphs, options.fitted_to))]
    if ranks is None or not ranks.rank:
        for line in found:
            warnings.warn(line, DataWarning, stacklevel=2)
    return train_run(dataset, replace(options, warnings=tuple(found)), ranks=ranks)


def _with_options(recipe: Recipe, time: float | str | None, threshold: str | None) -> Recipe:
    """A recipe with another budget of time, and another aim of thresholds."""
    if time is not None:
        if not model_of(recipe).is_portfolio:
            hint = "leave it out; training.epochs decides how long a recipe is trained"
            raise UserError(f"the recipe {recipe.name} has no budget of time", where="--time", hint=hint)
        recipe = replace(recipe, auto=replace(recipe.auto, time=parse_duration(str(time), "--time")))
    if threshold is not None:
        recipe = replace(recipe, training=replace(recipe.training, threshold=str(threshold)))
    return recipe


def _graph_until(graph: Graph, until: float) -> Graph:
    """A graph without the edges that are later than a time."""
    times = graph.times
    if times is None:
        raise UserError("the edges have no times", where="--edges-until", hint="leave it out")
    kept = graph.until(until)
    if len(times) and not kept.num_edges:
        known = f"their times are {time_text(times.min().item())} to {time_text(times.max().item())}"
        hint = f"{known}; give one of these, as a number or a date"
        raise UserError(f"no edge is from {time_text(until)} or before", where="--edges-until", hint=hint)
    return kept


def write_run_page(dataset: Dataset, out: Path, trained: TrainedRun | None) -> None:
    """Write the page of a finished run; the run is done, so a failure is only a warning."""
    from subgnn.reports import run_report, write_page

    try:
        write_page(run_report(out, dataset, trained), out / PAGE)
    except Exception as error:
        what = f"the run is done, but its page could not be written ({type(error).__name__}: {error})"
        warnings.warn(f"{what}; try again with: subgnn report {out}", DataWarning, stacklevel=3)
