"""Train one recipe on one dataset and write its page: what ``subgnn train`` and :func:`subgnn.train` call.

Or fit a run's chosen models again on a graph that has grown, with old and new labels; nothing is searched.
"""

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.api.options import with_options
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import LabelFormat, ReadOptions
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.own_times import snapshot_step, timed
from subgnn.data.read_tables import read_subgraphs
from subgnn.data.splits import first_held_out, looks_ahead, named_split, refuse_look_ahead, split_warnings
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import SPLITS, SubgraphSet, absent_rows, label_notes, single_classes, with_absent
from subgnn.data.values import time_text
from subgnn.errors import DataError, UserError, counted, excerpt, warn
from subgnn.inference.open import match_graph, open_run, renumbered, score
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import parse_recipe, portfolio, setting_text
from subgnn.models.registry import model_of, names_where
from subgnn.models.spec import ModelSpec
from subgnn.ragged import Ragged
from subgnn.render import write_page
from subgnn.reports.run_page import MODEL_CARD, model_card, run_report
from subgnn.result import RunResult, UpdatedFrom, read_result
from subgnn.task import metric_name, task_of
from subgnn.training.devices import Ranks
from subgnn.training.ensemble_selection import is_ranking
from subgnn.training.fit import TRAIN
from subgnn.training.options import NO_CALLBACKS, Callbacks, RunOptions, TrainedRun, TrainOptions
from subgnn.training.run import train_run
from subgnn.training.run_dir import CHECKPOINT, DATASET, PAGE, check_early, read_run_recipe, read_trained_on

_BY_SIZE = ("diffusion.algorithm", "diffusion.views")  # which follow from the graph, and may change with it


@with_options(TrainOptions)
def train(
    dataset: Dataset,
    recipe: Recipe,
    out: Path | str,
    *,
    options: TrainOptions,
    ranks: Ranks | None = None,
    source: str = "",
    keep_data: bool = False,
    callbacks: Callbacks = NO_CALLBACKS,
    report: bool = True,
) -> RunResult:
    """Train a recipe on a dataset, write the run's folder, and return the result, on every rank.

    Args:
        ranks: the ranks that torchrun started this process among (:func:`~subgnn.training.devices.current_ranks`); N of
            them at batches of b do what one does at N x b. None trains in this process alone.
        source: where the dataset was read from, stored so that ``predict`` finds the graph.
        keep_data: store the dataset in the run's folder, so that the run needs no other file.
    """
    dataset = replace(dataset, subgraphs=named_split(dataset.subgraphs, options.split))
    if options.time is not None:
        if not recipe.is_portfolio:
            hint = "leave it out; training.epochs decides how long a recipe is trained"
            raise UserError(f"the recipe {recipe.name} has no time budget", where="--time", hint=hint)
        recipe = replace(recipe, auto=replace(recipe.auto, time=options.time))
    if options.threshold is not None:
        recipe = replace(recipe, training=replace(recipe.training, threshold=str(options.threshold)))
    recipe = with_metric(recipe, dataset.subgraphs)
    if options.edges_until is not None:
        until, times = options.edges_until, dataset.graph.times
        if times is None:
            raise UserError("the edges have no times", where="--edges-until", hint="leave it out")
        dataset = replace(dataset, graph=dataset.graph.until(until))
        if len(times) and not dataset.graph.num_edges:
            known = f"their times are {time_text(times.min().item())} to {time_text(times.max().item())}"
            hint = f"{known}; give one of these, as a number or a date"
            raise UserError(f"no edge is from {time_text(until)} or before", where="--edges-until", hint=hint)
    options, step = _resolve_as_of(options, recipe, dataset)
    if options.as_of == "subgraph":
        dataset = replace(dataset, subgraphs=timed(dataset.subgraphs, step))
    elif not options.allow_look_ahead:
        refuse_look_ahead(dataset.graph, dataset.subgraphs)
    run = RunOptions(
        recipe,
        Path(out),
        source=str((Path(out) / DATASET).resolve()) if keep_data else source,
        keep_data=keep_data,
        write_page=write_run_page if report else None,
        callbacks=callbacks,
        look_ahead=options.as_of != "subgraph" and looks_ahead(dataset.graph, dataset.subgraphs),
        as_of_step=step,
        **asdict(options),
    )
    warned = [*split_warnings(dataset.subgraphs, run.fitted_to), *single_classes(dataset.subgraphs)]
    warned += _rare_in_test(recipe, dataset.subgraphs)
    rounded = [f"subgraphs are measured at their own times, rounded down to steps of {step:g}"] if step else []
    found = [*rounded, *label_notes(dataset.subgraphs), *map("; ".join, warned)]
    first = ranks is None or not ranks.rank
    for line in found if first else ():
        warn(line)
    result = train_run(dataset, replace(run, warnings=tuple(found)), ranks=ranks)
    if report and first:
        write_page(model_card(result), Path(out) / MODEL_CARD)
    return result


def _resolve_as_of(options: TrainOptions, recipe: Recipe, dataset: Dataset) -> tuple[TrainOptions, float]:
    """Whether subgraphs are measured at their own times, by default for a split by time, and the step of times."""
    graph, subgraphs = dataset.graph, dataset.subgraphs
    able = model_of(recipe).measures_at_own_time or recipe.is_portfolio
    if options.as_of is None:
        chosen = options.edges_until is None and not options.allow_look_ahead and able
        chosen = chosen and graph.times is not None and first_held_out(subgraphs) is not None
        options = replace(options, as_of="subgraph" if chosen else "now")
    if options.as_of != "subgraph":
        return options, 0.0
    if graph.times is None or subgraphs.times is None:
        lacking = "edges" if graph.times is None else "subgraphs"
        raise UserError(f"the {lacking} have no times", where="--as-of", hint="leave it out, or add a column of times")
    if not able:
        hint = f"methods that can: {', '.join(names_where('measures_at_own_time'))}; or give --as-of now"
        raise UserError(f"{recipe.method} cannot measure a subgraph as of its time", where="--as-of", hint=hint)
    return options, snapshot_step(graph, subgraphs.times)


def with_metric(recipe: Recipe, subgraphs: SubgraphSet) -> Recipe:
    """The recipe, and the candidates of a portfolio, with AUPRC as the metric of selection where a class is rare."""
    task = task_of(subgraphs.task)
    metric = task.default_metric(_targets_outside_test(subgraphs))
    if recipe.training.select_by != "auto" or metric == task.headline:
        return recipe
    candidates = tuple(replace(one, set=(f"training.select_by={metric}", *one.set)) for one in recipe.auto.candidates)
    training, auto = replace(recipe.training, select_by=metric), replace(recipe.auto, candidates=candidates)
    return replace(recipe, training=training, auto=auto)


def metric_line(recipe: Recipe, subgraphs: SubgraphSet) -> str:
    """A line about the metric of selection, if it is one for rare classes that the recipe does not name; or nothing."""
    metric = with_metric(recipe, subgraphs).training.select_by
    if metric == recipe.training.select_by:
        return ""
    targets = _targets_outside_test(subgraphs)
    rarer = task_of(subgraphs.task).positive(targets)
    share = f"{(targets == rarer).mean():.1%} of the subgraphs are {subgraphs.classes[rarer]}".replace("%", " %", 1)
    return f"compared by {metric_name(metric)}: {share}; set training.select_by to choose another"


def _rare_in_test(recipe: Recipe, subgraphs: SubgraphSet) -> list[tuple[str, str]]:
    """A test split with few subgraphs of the class that a ranking is about, as a fact and its consequence."""
    rarer = task_of(subgraphs.task).positive(_targets_outside_test(subgraphs))
    if rarer < 0 or subgraphs.splits is None or not is_ranking(recipe.training.select_by):
        return []
    test, name = np.asarray(subgraphs.targets)[subgraphs.indices("test")], excerpt(subgraphs.classes[rarer])
    count = int((test == rarer).sum())
    what = f"test has {count} {name} subgraph" + "s" * (count != 1)
    return [(what, "its scores say little")] if len(test) and count < 10 else []


def _targets_outside_test(subgraphs: SubgraphSet) -> NDArray[Any]:
    targets = np.empty(0) if subgraphs.targets is None else np.asarray(subgraphs.targets)
    return targets if subgraphs.splits is None else targets[subgraphs.splits[: len(targets)] != SPLITS.index("test")]


def write_run_page(dataset: Dataset, out: Path, trained: TrainedRun | None) -> None:
    """Write the page of a finished run; the run is done, so a failure is only a warning."""
    try:
        write_page(run_report(out, dataset, trained), out / PAGE)
    except Exception as error:
        what = f"the run is done, but its page could not be written ({type(error).__name__}: {error})"
        warn(f"{what}; try again with: subgnn report {out}")


def update_run(
    run: Path,
    graph: Path | Graph,
    out: Path,
    *,
    subgraphs: Source | None = None,
    reading: ReadOptions = ReadOptions(),
    device: str = "auto",
    callbacks: Callbacks = NO_CALLBACKS,
) -> RunResult:
    """Fit a run again on a grown graph, into a folder with a copy of the data, and compare held-out scores."""
    if run.is_file():
        raise DataError("an exported run has no labels to fit to", where=str(run), hint="give the folder of the run")
    check_early(TrainOptions(), out)
    before, own, checkpoint = read_result(run), read_trained_on(run), load_checkpoint(run / CHECKPOINT)
    new, match = match_graph(graph, own, before.reading)
    reading.on_note(match.line)
    known = match.subgraphs(own.subgraphs)
    if subgraphs is not None:
        # Two classes may become more, and few of the new subgraphs need not have both.
        task = "multi-class" if known.task == "binary" else known.task
        form = reading.labels or LabelFormat(task, before.reading.label_separator)
        more, _ = read_subgraphs(subgraphs, new, replace(reading, labels=form), draw_split=False)
        if more.splits is None:
            more = replace(more, splits=np.full(len(more), TRAIN, np.int8))
        reading.on_note(f"{counted(len(more), 'labelled subgraph')} added to {len(known):,}")
        known = joined(known, more)
    for note in match.notes:
        reading.on_note(note)
    members = {name: part.spec for name, part in checkpoint.parts.items()}
    recipe = settled(read_run_recipe(run), checkpoint.spec, members)
    dataset = Dataset(own.name, new, known, reading=before.reading)
    as_of = "subgraph" if before.as_of else "now" if before.look_ahead else None
    how: dict[str, Any] = {"seed": before.seed, "allow_look_ahead": before.look_ahead, "as_of": as_of, "device": device}
    found = train(dataset, recipe, out, keep_data=True, callbacks=callbacks, report=False, **how)
    found = replace(found, updated_from=_compared(run, before, match, known, new, out))
    found.save(out)
    write_run_page(dataset, out, None)
    return found


def joined(first: SubgraphSet, second: SubgraphSet) -> SubgraphSet:
    """Two sets of subgraphs of one task, one after the other; classes of the second that are new come last."""
    if first.task != second.task and {first.task, second.task} - {"binary", "multi-class"}:
        what = f"the labels are {second.task}, but those of the run are {first.task}"
        raise DataError(what, where="--subgraphs", hint="give labels of the same kind")
    classes = first.classes + tuple(name for name in second.classes if name not in first.classes)
    task = "multi-class" if first.task == "binary" and len(classes) > len(first.classes) else first.task
    targets = np.concatenate([renumbered(one, classes) for one in (first, second)])

    def together(one: Ragged, other: Ragged) -> Ragged:
        lengths = np.concatenate([one.lengths, other.lengths])
        return Ragged.from_lengths(np.concatenate([one.values, other.values]), lengths)

    nodes = together(first.nodes, second.nodes)
    if first.absent is not None or second.absent is not None:
        nodes = with_absent(nodes, together(absent_rows(first.nodes), absent_rows(second.nodes)))

    shared = [title for title in first.columns if title in second.columns]
    more: dict[str, Any] = {"columns": {title: [*first.columns[title], *second.columns[title]] for title in shared}}
    for name in ("splits", "names", "groups", "times"):
        one, other = getattr(first, name), getattr(second, name)
        if one is not None and other is not None:
            more[name] = Strings.of([*one, *other]) if isinstance(one, Strings) else np.concatenate([one, other])
    return SubgraphSet(nodes, task, targets, classes, **more)


def settled(recipe: Recipe, spec: ModelSpec, members: dict[str, ModelSpec]) -> Recipe:
    """The recipe of a run with the choices that training made: the members of a portfolio, and selected settings."""
    if not recipe.is_portfolio:
        return parse_recipe(recipe.plain(), recipe.name, selected_settings(recipe, spec))
    auto, given = recipe.auto, portfolio(recipe)
    if unknown := [name for name in members if name not in given]:
        raise UserError(f"the recipe has no candidate {unknown[0]!r}", where="update", hint="train again")
    candidates = tuple(
        replace(one, set=one.set + tuple(selected_settings(given[one.name], members[one.name])))
        for one in auto.candidates
        if one.name in members
    )
    return replace(recipe, auto=replace(auto, candidates=candidates, only=()))


def selected_settings(recipe: Recipe, spec: ModelSpec) -> list[str]:
    """Overrides that turn a recipe into the one whose model was selected, as after ``--set``."""
    sections: dict[str, tuple[Any, Any]]
    sections = {"embeddings": (recipe.embeddings, spec.embeddings), "model": (recipe.model, spec.model)}
    sections |= {name: (recipe.of(type(chosen)), chosen) for name, chosen in spec.methods.items() if name != "baseline"}
    found = []
    for section, (given, chosen) in sections.items():
        for one in fields(chosen):
            key, value = f"{section}.{one.name}", getattr(chosen, one.name)
            if value != getattr(given, one.name) and key not in _BY_SIZE:
                found.append(f"{key}={setting_text(value)}")
    return found


def _compared(
    run: Path, before: RunResult, match: NodeMatch, known: SubgraphSet, graph: Graph, out: Path
) -> UpdatedFrom:
    """What the new run came from, with scores of both on the held-out subgraphs whose classes the old run knows."""
    about: dict[str, Any] = {"run": str(run.resolve()), "date": before.date, "graph": match.line}
    known = timed(known, before.as_of_step) if before.as_of else known
    held = known.take(np.empty(0, np.int64) if known.splits is None else known.indices("test"))
    try:
        old = open_run(run, graph=graph).predictor
    except DataError as error:  # a model that cannot answer on another graph
        return UpdatedFrom(**about, note=error.what)
    classes, task = old.spec.classes, task_of(known.task)
    if len(classes) < len(known.classes):
        wide = np.asarray(held.targets)
        there = wide < len(classes) if task.one_class else np.ones(len(held), bool)
        held = replace(held, targets=wide if task.one_class else wide[:, : len(classes)]).take(np.flatnonzero(there))
        held = replace(held, classes=classes, task=old.spec.task)
    if not len(held):
        return UpdatedFrom(**about, note="no held-out subgraphs to compare on")
    scores = [score(one, held, select_by=before.select_by, where="update")[0] for one in (old, open_run(out).predictor)]
    return UpdatedFrom(**about, subgraphs=len(held), before=scores[0], after=scores[1])
