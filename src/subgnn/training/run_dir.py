"""The folder of a run, which a person can read.

RUN/run.json          results: the keys of ``subgnn train --json``
RUN/recipe.json       all settings, as they were
RUN/metrics.jsonl     a line an epoch
RUN/checkpoint.safetensors   the selected weights, anchors, class names and the graph's hash
RUN/embeddings.safetensors   the node embeddings it started from, unless they are random or larger than 256 MB
RUN/report.html       the page of the run
RUN/tensorboard/      event files, where they were asked for
RUN/last.pt           everything ``--resume`` needs; gone when the run is done
RUN/.lock             who writes the run; gone when nobody does
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from subgnn.config.files import parse_recipe
from subgnn.config.settings import Recipe
from subgnn.errors import DataError
from subgnn.parallel.locks import LOCK, clear_locked, locked_folder, names_in
from subgnn.storage.files import atomic_write, remove_leftovers
from subgnn.storage.parsing import MAX_JSON, parse_json, read_bounded

RESULTS, RECIPE, METRICS, LAST = "run.json", "recipe.json", "metrics.jsonl", "last.pt"
CHECKPOINT = "checkpoint.safetensors"
PAGE = "report.html"
LABEL_UNIT = "label"
"""``error_unit`` of a run with real-valued labels: mae and rmse are in units of the label."""
_RESULT_TYPES: dict[str, type | tuple[type, ...]] = {
    "dataset": str,
    "source": str,
    "recipe": str,
    "method": str,
    "task": str,
    "error_unit": str,
    "unused": list,
    "device": str,
    "seed": int,
    "selected_epoch": int,
    "epochs": int,
    "val": dict,
    "test": dict,
    "published": dict,
    "seconds": dict,
    "versions": dict,
    "lr": (int, float),
    "peak_memory_mb": (int, float),
}


def write_json(value: Any, path: Path, *, overwrite: bool = True) -> None:
    """Write JSON; the file appears whole or not at all."""
    with atomic_write(path, overwrite=overwrite) as temporary:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        # Halves of characters, as paths may have them, become what JSON escapes them to.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_json(path: Path, hint: str) -> Any:
    """Read what :func:`write_json` wrote."""
    return parse_json(read_bounded(path, MAX_JSON), str(path), hint, what="this is not valid JSON, or damaged")


@contextmanager
def claimed(out: Path, recipe: Recipe, seed: int, resume: bool) -> Iterator[int | None]:
    """Make the run's folder, or take up the run that is to go on there, and be the only one who writes it.

    A new folder goes again where the block fails before there is anything to go on with (:func:`_removed_on_failure`).

    Yields:
        The descriptor of the folder's lock (:func:`~subgnn.parallel.locks.locked_folder`).

    Raises:
        DataError: where another process writes it, or it holds something else.
    """
    if _is_foreign(out):
        raise _taken(out)
    with locked_folder(out) as lock:
        remove_leftovers(out)
        new = not goes_on(out, recipe, seed, resume)
        if new:
            if any(path.name != LOCK for path in out.iterdir()):
                raise _taken(out)
            write_json(asdict(recipe) | {"seed": seed}, out / RECIPE)
        with _removed_on_failure(out) if new else nullcontext():
            yield lock


@contextmanager
def _removed_on_failure(out: Path) -> Iterator[None]:
    """Clear a run's new folder where the block fails before there is anything to go on with; not after an interrupt.

    So a command that was refused can be given again with the same --out. The folder itself goes with its lock.
    """
    try:
        yield
    except Exception:
        if not any((out / name).is_file() for name in (LAST, CHECKPOINT, RESULTS)):
            clear_locked(out)
        raise


def goes_on(out: Path, recipe: Recipe, seed: int, resume: bool) -> bool:
    """Whether there is a run to go on with.

    Raises:
        DataError: where its settings are others.
    """
    if not (resume and (out / RECIPE).is_file()):
        return False
    before = read_json(out / RECIPE, "give another --out")
    if before != json.loads(json.dumps(asdict(recipe) | {"seed": seed})):
        hint = "give the same recipe, settings and seed, or another --out"
        raise DataError("the run there has other settings", where=str(out), hint=hint)
    return True


def read_run_recipe(out: Path) -> Recipe:
    """The recipe that a run was trained with."""
    content = read_json(out / RECIPE, "train again")
    if not isinstance(content, dict):
        raise DataError("a table is needed", where=str(out / RECIPE), hint="train again")
    return parse_recipe({name: value for name, value in content.items() if name != "seed"}, str(out / RECIPE))


def _is_foreign(out: Path) -> bool:
    """Whether something is there that no run has made, in which not even a lock is to be left."""
    names = names_in(out)
    if not names:
        return names is None
    return not any(name in (LOCK, RECIPE) or name.startswith(f".{RECIPE}.") for name in names)


def _taken(out: Path) -> DataError:
    return DataError("exists already", where=str(out), hint="choose another --out, or go on with --resume")


def read_results(out: Path) -> dict[str, Any]:
    """run.json of a finished run."""
    if not (out / RESULTS).is_file():
        raise DataError("no finished run", where=str(out), hint="subgnn train writes one; --resume finishes it")
    hint = "remove it, and finish the run with subgnn train --resume"
    found = read_json(out / RESULTS, hint)
    if not isinstance(found, dict):
        raise DataError(f"a table is needed, not a {type(found).__name__}", where=str(out / RESULTS), hint=hint)
    for name, kind in _RESULT_TYPES.items():
        if name in found and not isinstance(found[name], kind):
            what = f"'{name}' is {type(found[name]).__name__}"
            raise DataError(what, where=str(out / RESULTS), hint=hint)
    return without_standardised_errors(found)


def without_standardised_errors(results: dict[str, Any]) -> dict[str, Any]:
    """Results without mae and rmse where these are not in units of the label, as of runs of an earlier version."""
    if not isinstance(results, dict) or results.get("task") != "regression" or results.get("error_unit") == LABEL_UNIT:
        return results
    scores = {split: results[split] for split in ("train", "val", "test") if isinstance(results.get(split), dict)}
    kept = {split: {k: v for k, v in found.items() if k not in ("mae", "rmse")} for split, found in scores.items()}
    return results | kept


def source_of(results: dict[str, Any], data: Path | None) -> Path:
    """Where the dataset of a run is: as ``data`` says, or where the run read it.

    Raises:
        DataError: where there is none.
    """
    source = data if data is not None else Path(results.get("source") or "the run names no dataset")
    try:
        if source.exists():
            return source
    except (OSError, ValueError):  # a name that no file can have
        pass
    shown = str(source).encode("unicode_escape").decode()[:200]
    raise DataError("the run's dataset is not there", where=shown, hint="say where it is with --data")
