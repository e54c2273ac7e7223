"""The folder of a run, which a person can read.

RUN/run.json          results: the keys of ``subgnn train --json``
RUN/recipe.json       all settings, as they were
RUN/metrics.jsonl     a line an epoch
RUN/checkpoint.pt     the selected weights, anchors, class names and the graph's hash
RUN/embeddings.safetensors   the node embeddings it started from, unless they are random or larger than 256 MB
RUN/report.html       the page of the run
RUN/tensorboard/      event files, where they were asked for
RUN/last.pt           everything ``--resume`` needs; gone when the run is done
RUN/.lock             who writes the run; gone when nobody does
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from subgnn.config import Recipe
from subgnn.data.formats.text import appearing, remove_leftovers
from subgnn.errors import DataError
from subgnn.locks import LOCK, locked_folder

RESULTS, RECIPE, METRICS, CHECKPOINT, LAST = "run.json", "recipe.json", "metrics.jsonl", "checkpoint.pt", "last.pt"
PAGE = "report.html"


def write_json(value: Any, path: Path, *, overwrite: bool = True) -> None:
    """Write JSON; the file appears whole or not at all."""
    with appearing(path, overwrite=overwrite) as temporary:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        # Halves of characters, as paths may have them, become what JSON escapes them to.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_json(path: Path, hint: str) -> Any:
    """Read what :func:`write_json` wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise DataError("this is no JSON, or damaged", where=str(path), hint=hint) from None


@contextmanager
def claimed(out: Path, recipe: Recipe, seed: int, resume: bool) -> Iterator[int | None]:
    """Make the run's folder, or take up the run that is to go on there, and be the only one who writes it.

    Yields:
        The descriptor of the folder's lock (:func:`~subgnn.locks.locked_folder`).

    Raises:
        DataError: where another process writes it, or it holds something else.
    """
    if _is_foreign(out):
        raise _taken(out)
    with locked_folder(out) as lock:
        remove_leftovers(out)
        if not goes_on(out, recipe, seed, resume):
            if any(path.name != LOCK for path in out.iterdir()):
                raise _taken(out)
            write_json(asdict(recipe) | {"seed": seed}, out / RECIPE)
        yield lock


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


def _is_foreign(out: Path) -> bool:
    """Whether something is there that no run has made, in which not even a lock is to be left."""
    if not out.is_dir():
        return out.exists()
    names = [path.name for path in out.iterdir()]
    return bool(names) and not any(name in (LOCK, RECIPE) or name.startswith(f".{RECIPE}.") for name in names)


def _taken(out: Path) -> DataError:
    return DataError("exists already", where=str(out), hint="choose another --out, or go on with --resume")


def read_results(out: Path) -> dict[str, Any]:
    """run.json of a finished run."""
    if not (out / RESULTS).is_file():
        raise DataError("no finished run", where=str(out), hint="subgnn train writes one; --resume finishes it")
    found: dict[str, Any] = read_json(out / RESULTS, "remove it, and finish the run with subgnn train --resume")
    return found
