"""Training in Python: fit a model to a dataset, as ``subgnn train`` does."""

from __future__ import annotations

import shutil
import warnings
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp

from subgnn.api.inputs import Settings, as_recipe
from subgnn.api.progress import progress_bar
from subgnn.api.run import Run, load
from subgnn.api.train_recipe import train as train_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.errors import DataWarning, UserError
from subgnn.models.registry import unused_line


def train(
    data: Dataset | str | Path,
    out: str | Path | None = None,
    *,
    recipe: str | Path | Recipe = "auto",
    settings: Settings = (),
    time: float | str | None = None,
    threshold: str | None = None,
    seed: int = 0,
    split: str = "stored",
    edges_until: float | str | None = None,
    allow_look_ahead: bool = False,
    device: str = "auto",
    resume: bool = False,
    cache: bool = True,
    loggers: Sequence[str] = (),
    report: bool = True,
    progress: bool | None = None,
) -> Run:
    """Train on a dataset: the best model that a portfolio of recipes finds, or the recipe that is named.

    Args:
        data: a dataset (:func:`~subgnn.data.read_tables.read_tables`), or the path of a folder or bundle.
        out: the folder of the run; by default it is temporary and removed with the :class:`Run`.
        recipe: the name of a recipe, or a .toml file.
        settings: overrides, as ``{"training.epochs": 5}``.
        time: the budget of ``auto``, in seconds or as ``"5m"``.
        threshold: the aim by which the threshold of the rarer of two classes, or of each label, is chosen:
            ``"precision=0.9"``, ``"recall=0.8"``, ``"f1"`` or ``"cost=fp:1,fn:20"``.
        seed: of anchors, weights, batches and dropout.
        split: ``stored``, or ``published``.
        edges_until: leave out edges that are later than this time, a number or an ISO date, here and in predictions.
        allow_look_ahead: train although the split is by time and edges are later than its first held-out subgraph.
        device: ``auto``, ``cpu`` or ``cuda``.
        resume: continue an interrupted run in ``out``.
        cache: read prepared subgraphs and pretrained embeddings from the cache, and write them there.
        loggers: of ``tensorboard``, ``mlflow`` and ``wandb``, those to log to.
        report: write the page of the run; without a folder it is written when :attr:`Run.report` is asked for.
        progress: show a progress bar; by default in a terminal and in a notebook.

    What the graph has and the recipe does not use, as weights of edges, is said in a warning.

    Raises:
        UserError: for settings that are unknown or do not fit the data.
    """
    if isinstance(out, Recipe):
        hint = "write train(data, out, recipe=...)"
        raise UserError("the second argument is a recipe, not the folder of the run", where="train", hint=hint)
    chosen = as_recipe(recipe, settings)
    source = "" if isinstance(data, Dataset) else str(Path(data).resolve())
    dataset = data if isinstance(data, Dataset) else read_dataset(data)
    if line := unused_line(chosen, dataset.graph):
        warnings.warn(line, DataWarning, stacklevel=2)
    folder = Path(mkdtemp(prefix="subgnn-"), "run") if out is None else Path(out)
    epochs, pretraining = chosen.training.epochs, chosen.pretrain.epochs
    with ExitStack() as temporary, progress_bar(epochs, pretraining, quiet=True, shown=progress) as bar:
        if out is None:
            temporary.callback(shutil.rmtree, folder.parent, ignore_errors=True)
        train_recipe(
            dataset,
            chosen,
            folder,
            time=time,
            threshold=threshold,
            seed=seed,
            split=split,
            edges_until=edges_until,
            allow_look_ahead=allow_look_ahead,
            device=device,
            resume=resume,
            source=source,
            keep_data=not source and out is not None,
            cache=cache,
            callbacks=bar.callbacks(),
            loggers=loggers,
            report=report and out is not None,
        )
        run = load(folder, dataset)
        weakref.finalize(run, temporary.pop_all().close)
    return run
