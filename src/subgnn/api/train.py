"""Training in Python: fit a model to a dataset, as ``subgnn train`` does."""

from __future__ import annotations

import shutil
import warnings
import weakref
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp

from subgnn.api.inputs import Settings, as_recipe
from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.api.run import Run, load
from subgnn.api.train_recipe import train as train_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.errors import DataWarning
from subgnn.models.recipes import unused_line
from subgnn.training.options import TrainOptions


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
    dataset = data if isinstance(data, Dataset) else read_dataset(data)
    if line := unused_line(chosen, dataset.graph):
        warnings.warn(line, DataWarning, stacklevel=3)
    folder = Path(mkdtemp(prefix="subgnn-"), "run") if out is None else Path(out)
    epochs, pretraining = chosen.training.epochs, chosen.pretrain.epochs
    with ExitStack() as temporary, progress_bar(epochs, pretraining, quiet=True, shown=progress) as bar:
        if out is None:
            temporary.callback(shutil.rmtree, folder.parent, ignore_errors=True)
        train_recipe(
            dataset,
            chosen,
            folder,
            source=source,
            keep_data=not source and out is not None,
            callbacks=bar.callbacks(),
            report=report and out is not None,
            **asdict(options),
        )
        run = load(folder, dataset)
        weakref.finalize(run, temporary.pop_all().close)
    return run
