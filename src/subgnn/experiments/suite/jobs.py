"""What a worker does for a suite: share what several runs need, and one run.

runs/NAME/outcome.json     what the report tells of the run; it is there when the run is finished
runs/NAME/answers.npz      test probabilities, targets, overlap with training; of seed 0 the vectors z_S, too
runs/NAME/run.json         and recipe.json, metrics.jsonl: as of any run
runs/NAME/failure.json     in their place, why the run failed

The weights and the node embeddings of a run are removed when its answers are kept: a run takes kilobytes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from subgnn.config.files import parse_recipe
from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.embeddings import source_vectors
from subgnn.embeddings.of_run import FILE as EMBEDDINGS
from subgnn.experiments.constant import constant_pieces
from subgnn.experiments.suite.circumstances import circumstances, peak_memory, release_memory, reset_peak_memory
from subgnn.experiments.suite.plan import with_split
from subgnn.experiments.train import train
from subgnn.inference.predictor import Predictor
from subgnn.parallel.locks import locked_folder
from subgnn.prepare.cached import prepare_draws_cached
from subgnn.ragged import Ragged
from subgnn.storage.files import atomic_write
from subgnn.training.devices import quiet_lightning
from subgnn.training.run_dir import CHECKPOINT, LAST, write_json

OUTCOME, ANSWERS, FAILURE = "outcome.json", "answers.npz", "failure.json"
_KEPT = ("key", "config", "suite", "dataset", "split", "seed", "entries", "set", "command")
_FOUND = (
    "method",
    "task",
    "selected_epoch",
    "epochs",
    "lr",
    "val",
    "test",
    "error_unit",
    "candidate",
    "seconds",
    "device",
    "versions",
)


def share_job(job: dict[str, Any], dataset: Dataset | None = None) -> None:
    """Pretrain the embeddings of a job, or prepare its subgraphs, into the cache; ``job["share"]`` says which.

    Args:
        dataset: where it is not to be read from ``job["source"]``.
    """
    with _one_thread():
        recipe, dataset = _recipe(job), dataset or _load(job["source"], job["id_base"])
        graph = dataset.graph.undirected()
        if job["share"] == "pretrain":
            source_vectors(recipe, graph, device=job["device"])
        else:
            for _ in prepare_draws_cached(recipe, graph, dataset.subgraphs.nodes, seed=job["seed"]):
                pass


def run_job(job: dict[str, Any], dataset: Dataset | None = None) -> dict[str, Any]:
    """One run from beginning to end; one that was interrupted goes on.

    Args:
        dataset: where it is not to be read from ``job["source"]``.

    Returns:
        The content of outcome.json.
    """
    with locked_folder(Path(job["out"])):
        return _run_job(job, dataset)


def _run_job(job: dict[str, Any], dataset: Dataset | None) -> dict[str, Any]:
    folder = Path(job["out"])
    with _one_thread(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        reset_peak_memory()
        begin = time.perf_counter()
        dataset = with_split(dataset or _load(job["source"], job["id_base"]), job["split"], job["seed"])
        recipe = _recipe(job)
        (folder / FAILURE).unlink(missing_ok=True)  # of an earlier try
        results = train(
            dataset,
            recipe,
            folder,
            seed=job["seed"],
            device=job["device"],
            resume=True,
            source=job["source"],
            cache=job["cache"],
            report=False,
        )
        _keep_answers(folder, dataset, results, vectors=job["seed"] == 0 and recipe.method == "subgnn")
        outcome = {
            **{name: job[name] for name in _KEPT},
            "recipe": recipe.name,
            **{name: results.get(name) for name in _FOUND},
            "classes": list(dataset.subgraphs.classes),
            "majority": _majority(dataset),
            "total_seconds": time.perf_counter() - begin,
            **peak_memory(),
            **circumstances(),
            "warnings": sorted(
                {" ".join(str(w.message).split()) for w in said if w.category.__module__ == "subgnn.errors"}
            ),
        }
    write_json(outcome, folder / OUTCOME)
    drop_weights(folder)
    release_memory()
    return outcome


def drop_weights(folder: Path) -> None:
    """Remove from a finished run what no report needs."""
    for name in (CHECKPOINT, LAST, EMBEDDINGS, FAILURE):
        (folder / name).unlink(missing_ok=True)


def node_overlap(nodes: Ragged, others: Ragged, num_nodes: int) -> NDArray[np.float64]:
    """The largest share of each subgraph's nodes that any one of the others has.

    Shapes:
        returns: (n,), from 0 to 1.

    Example:
        >>> a, b = Ragged.from_rows([np.array([0, 1, 2, 3])]), Ragged.from_rows([np.array([3, 4]), np.array([0, 1, 9])])
        >>> node_overlap(a, b, 10).tolist()
        [0.5]
    """

    def members(sets: Ragged) -> csr_array:
        ones = np.ones(len(sets.values), np.float64)
        return csr_array((ones, sets.values, sets.offsets), shape=(len(sets), num_nodes))

    if not len(others):
        return np.zeros(len(nodes))
    most = (members(nodes) @ members(others).T).max(axis=1).toarray().reshape(-1)
    return np.asarray(most / np.diff(nodes.offsets))


def _keep_answers(folder: Path, dataset: Dataset, results: dict[str, Any], *, vectors: bool) -> None:
    """Ask the trained run about the test split, and keep what it says; without a test split there is nothing."""
    subgraphs = dataset.subgraphs
    rows = subgraphs.indices("test")
    if not len(rows):
        return
    nodes = subgraphs.nodes.take(rows)
    predictor = Predictor(folder / CHECKPOINT, dataset.graph.undirected(), device=results["device"])
    train_nodes = subgraphs.nodes.take(subgraphs.indices("train"))
    kept: dict[str, Any] = {
        "rows": rows,
        "probabilities": predictor.probabilities(nodes),
        "targets": np.asarray(subgraphs.targets)[rows],
        "overlap": node_overlap(nodes, train_nodes, dataset.graph.num_nodes).astype(np.float32),
    }
    if vectors:
        kept["vectors"] = predictor.embeddings(nodes).astype(np.float32)
    with atomic_write(folder / ANSWERS, overwrite=True) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **kept)


def _majority(dataset: Dataset) -> float | None:
    """The test score of the answer that looks at nothing."""
    return constant_pieces(dataset, "test").score if len(dataset.subgraphs.indices("test")) else None


def _recipe(job: dict[str, Any]) -> Recipe:
    return parse_recipe(job["recipe"], job["folder"])


@lru_cache(maxsize=2)
def _load(source: str, id_base: int | None) -> Dataset:
    """A worker's next job is often of the same dataset."""
    return read_dataset(Path(source), id_base=id_base)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread each, also where the job runs in a process that had more: the sums are then added in one order."""
    quiet_lightning()
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
