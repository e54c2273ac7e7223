"""Fit a run's chosen models again on a graph that has grown, with old and new labels; nothing is searched."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from subgnn.api.train_recipe import train, write_run_page
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats.format import LabelFormat, ReadOptions
from subgnn.data.formats.tables import Source
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.data.own_times import timed
from subgnn.data.read_tables import read_subgraphs
from subgnn.data.strings import Strings
from subgnn.data.subgraphs import SubgraphSet, absent_rows, with_absent
from subgnn.errors import DataError, UserError, counted
from subgnn.inference.open import match_graph, open_run, renumbered, score
from subgnn.models.checkpoint import load_checkpoint
from subgnn.models.recipes import parse_recipe, portfolio, setting_text
from subgnn.models.spec import ModelSpec
from subgnn.ragged import Ragged
from subgnn.result import RunResult, UpdatedFrom, read_result
from subgnn.task import task_of
from subgnn.training.fit import TRAIN
from subgnn.training.options import NO_CALLBACKS, Callbacks, TrainOptions
from subgnn.training.run_dir import CHECKPOINT, check_early, read_run_recipe, read_trained_on

_BY_SIZE = ("diffusion.algorithm", "diffusion.views")  # which follow from the graph, and may change with it


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
