"""The folder of a run, whose files docs/command_line.md lists; .lock names the process that writes it."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from subgnn.config.recipes import RUN_OPTIONS, RUN_RECIPE
from subgnn.config.settings import AutoSettings, Recipe, recipe_key
from subgnn.data.dataset import Dataset
from subgnn.data.formats.bundle import read_bundle, write_bundle
from subgnn.data.node_match import matchable
from subgnn.data.own_times import timed
from subgnn.data.splits import named_split
from subgnn.data.subgraphs import SPLITS, Keys, SubgraphSet, changes, subgraph_keys
from subgnn.errors import DataError
from subgnn.metrics.thresholds import Aim
from subgnn.models.recipes import parse_recipe, unused_data
from subgnn.parallel.locks import LOCK, locked_folder, names_in, remove
from subgnn.result import RESULTS, DataFacts, RunResult, read_result
from subgnn.storage.files import read_json, refuse_existing, remove_leftovers, write_json
from subgnn.training.options import RunOptions, TrainOptions
from subgnn.versions import versions

RECIPE, METRICS, LAST = RUN_RECIPE, "metrics.jsonl", "last.safetensors"
CHECKPOINT = "checkpoint.safetensors"
_COPIED = ("source", "split", "edges_until", "look_ahead", "as_of_step", "seed", "fitted_to", "warnings")
PAGE, DATASET, SUBGRAPHS = "report.html", "dataset.subgnn", "trained_on.subgnn"


def result_fields(options: RunOptions, dataset: Dataset, device: object, devices: int = 1) -> dict[str, Any]:
    """Fields of the result that no training decides: the data, the settings, the machine and the time."""
    graph, subgraphs, card = dataset.graph, dataset.subgraphs, dataset.card
    licences = [card.get("licence", ""), *(source.get("licence", "") for source in card.get("sources", ()))]
    facts = DataFacts(
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        splits={} if subgraphs.splits is None else {split: len(subgraphs.indices(split)) for split in SPLITS},
        classes=subgraphs.num_classes,
        graph_hash=graph.undirected().content_hash,
        subgraphs_hash=subgraphs.content_hash,
        source=str(card.get("source", "")),
        licence="; ".join(dict.fromkeys(str(one) for one in licences if one)),
    )
    return {
        **{name: getattr(options, name) for name in _COPIED},
        "run": str(options.out),
        "dataset": dataset.name,
        "reading": dataset.reading,
        "as_of": "subgraph" if options.as_of == "subgraph" else "",
        "recipe": options.recipe.name,
        "method": options.recipe.method,
        "task": subgraphs.task,
        "unused": tuple(unused_data(options.recipe, graph, subgraphs)),
        "data": facts,
        "published": options.recipe.published,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "device": str(device),
        "devices": devices,
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def check_early(options: TrainOptions, out: Path) -> None:
    """Check, before the data are read, that the folder is empty and can be written, and that the aim is well formed."""
    refuse_existing(out, overwrite=True)
    names, may_exist = names_in(out), options.resume or os.environ.get("RANK", "0") != "0"  # which the first has made
    if names is None or not (may_exist or all(name.startswith(".") for name in names)):
        raise _existing(out)
    if options.threshold is not None:
        Aim.parse(str(options.threshold))


@contextmanager
def claim_run(options: RunOptions) -> Iterator[None]:
    """Create the run's folder, or continue the run in it, and lock it until the end of the block.

    If the block fails before there is anything to resume, the content of a new folder is removed, so that the command
    can be given again with the same --out. An interrupt removes nothing.
    """
    out = options.out
    # Not even a lock file may be left in what is not the folder of a run.
    names = names_in(out)
    if names is None or (names and not any(name in (LOCK, RECIPE) or name.startswith(f".{RECIPE}.") for name in names)):
        raise _existing(out)
    with locked_folder(out):
        remove_leftovers(out)
        new = not can_resume(options)
        if new:
            if any(path.name != LOCK for path in out.iterdir()):
                raise _existing(out)
            write_json(options.recipe.plain() | _kept_options(options), out / RECIPE)
        try:
            yield
        except Exception:
            if new and not any((out / name).is_file() for name in (LAST, CHECKPOINT, RESULTS)):
                for path in out.iterdir():
                    if path.name != LOCK:  # without which another process could take the folder
                        remove(path)
            raise


def can_resume(options: RunOptions) -> bool:
    """Whether there is a run to resume, with an error if its settings differ; a changed note does not matter."""
    out = options.out
    if not (options.resume and (out / RECIPE).is_file()):
        return False
    before, kept = _read_run_recipe(out, "give another --out")
    if kept != _kept_options(options) or _settings(before) != _settings(options.recipe):
        hint = "give the same recipe, settings, seed, split and edges, or another --out"
        raise DataError("the existing run has different settings", where=str(out), hint=hint)
    return True


def _kept_options(options: RunOptions) -> dict[str, Any]:
    """The options of the command that recipe.json has beside the settings."""
    found = {name: getattr(options, name) for name in RUN_OPTIONS}
    return {name: value for name, value in found.items() if value not in (None, "now")}


def _settings(recipe: Recipe) -> dict[str, Any]:
    """All settings except the budget of a portfolio, which may change when a run is resumed."""
    resolved = parse_recipe(recipe.plain(), "recipe")  # with the defaults of its method, if it was made in Python
    return recipe_key(replace(resolved, auto=replace(recipe.auto, time=AutoSettings().time)))


def read_run_recipe(out: Path) -> Recipe:
    """The recipe that a run was trained with."""
    return _read_run_recipe(out, "train again")[0]


def _read_run_recipe(out: Path, hint: str) -> tuple[Recipe, dict[str, Any]]:
    """The recipe of a run, and the options of the command that are kept beside it: seed, split and time of edges."""
    content = read_json(out / RECIPE, hint)
    if not isinstance(content, dict):
        raise DataError("a table is needed", where=str(out / RECIPE), hint=hint)
    options = {name: content.pop(name) for name in RUN_OPTIONS if name in content}
    return parse_recipe(content, str(out / RECIPE)), options


def _existing(out: Path) -> DataError:
    return DataError("exists already", where=str(out), hint="choose another --out, or continue with --resume")


def is_finished(out: Path) -> bool:
    """Whether a run has final results, not those of an interrupted or late portfolio, which can resume."""
    return (out / RESULTS).is_file() and not (found := read_result(out)).interrupted and not found.late


def find_runs(folder: Path) -> list[Path]:
    """The folders of runs at and below a folder, by path, also unfinished ones; hidden folders are skipped."""
    if not folder.is_dir():
        raise DataError("no such folder", where=str(folder), hint="give a folder with runs of subgnn train")
    found = []
    for path, folders, names in os.walk(folder):
        if RESULTS in names or RECIPE in names:
            found.append(Path(path))
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return sorted(found)


def as_trained(dataset: Dataset, result: RunResult) -> Dataset:
    """The dataset of a run with the edges and the split that it was trained on; one without splits has none."""
    if result.as_of:
        dataset = replace(dataset, subgraphs=timed(dataset.subgraphs, result.as_of_step))
    if result.edges_until is not None:
        dataset = replace(dataset, graph=dataset.graph.until(result.edges_until))
    if dataset.subgraphs.splits is None:
        return dataset
    return replace(dataset, subgraphs=named_split(dataset.subgraphs, result.split))


def keep_subgraphs(dataset: Dataset, out: Path) -> None:
    """Store the subgraphs and node names with a run, to answer on other graphs, or compare them with those there."""
    if (out / SUBGRAPHS).is_file():
        before = subgraph_keys(read_trained_on(out).subgraphs)
        check_subgraphs(before, dataset.subgraphs, str(out), "continue with those, or give another --out")
        return
    write_bundle(matchable(dataset), out / SUBGRAPHS)


def read_trained_on(out: Path) -> Dataset:
    """The subgraphs that a run was trained with, on as much of its graph as matching needs."""
    try:
        return read_bundle(out / SUBGRAPHS)
    except DataError as error:
        raise DataError(error.what, where=error.where, hint="train again") from None


def check_subgraphs(trained_with: Keys, subgraphs: SubgraphSet, where: str, hint: str) -> None:
    """Refuse subgraphs that are not those a run was trained with, and say how they differ."""
    if trained_with.ndim != 2 or trained_with.shape[1] != 3:
        raise DataError("the keys of its subgraphs are damaged", where=where, hint="train again")
    if found := changes(trained_with, subgraph_keys(subgraphs)):
        what = f"the subgraphs are not those the run was trained with: {', '.join(found)}"
        raise DataError(what, where=where, hint=hint)


def keep_dataset(dataset: Dataset, out: Path) -> None:
    """Store the dataset in the folder of a run, or compare it with the one that is there from before."""
    path = out / DATASET
    if not path.is_file():
        write_bundle(dataset, path)
        return
    both = (dataset, read_bundle(path))
    hashes = [(one.graph.content_hash, one.graph.names_hash, one.subgraphs.content_hash) for one in both]
    if hashes[0] != hashes[1]:
        hint = f"continue with the dataset in {path}, or give another --out"
        raise DataError("the existing run used a different dataset", where=str(out), hint=hint)


def dataset_path(run: Path, result: RunResult, data: Path | None) -> Path:
    """The dataset of a run: ``data``, or the one in its folder, or the path in its result."""
    if data is None and (run / DATASET).is_file():
        return run / DATASET
    source = data if data is not None else Path(result.source or "the run names no dataset")
    try:
        if source.exists():
            return source
    except (OSError, ValueError):  # not the name of a file
        pass
    shown = str(source).encode("unicode_escape").decode()[:200]
    raise DataError("the run's dataset is not there", where=shown, hint="say where it is with --data")
