"""The jobs of a suite that a worker runs: preparation that several runs share, and one run.

runs/NAME/outcome.json     the facts that the table needs; it exists once the run is finished
runs/NAME/answers.npz      test probabilities, targets and units
runs/NAME/run.json         and recipe.json, metrics.jsonl: as of any run
runs/NAME/failure.json     instead of these, the message of a run that failed

The weights and node embeddings of a run are removed once its test predictions are saved: a run takes kilobytes.
"""

import resource
import shutil
import subprocess
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subgnn.api.train_recipe import train
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.splits import split_units
from subgnn.embeddings.sources import source_vectors
from subgnn.inference.predictor import Predictor
from subgnn.lab.suites.spec import with_split
from subgnn.metrics.significance import calibration_error, score_terms
from subgnn.models.recipes import parse_recipe
from subgnn.parallel.engine import one_thread
from subgnn.parallel.locks import locked_folder
from subgnn.prepare.measure import prepare_cached
from subgnn.storage.files import atomic_write, write_json
from subgnn.task import task_of
from subgnn.training.portfolio import CANDIDATES
from subgnn.training.run_dir import CHECKPOINT, SUBGRAPHS

_PACKAGE = Path(__file__).parents[2]
OUTCOME, ANSWERS, FAILURE = "outcome.json", "answers.npz", "failure.json"
_FROM_RESULT = ("task", "val", "test", "device")
_FROM_JOB = ("key", "suite", "dataset", "split", "seed", "models", "set", "command")


def share_job(job: dict[str, Any]) -> None:
    """Pretrain the embeddings of a job, or prepare its subgraphs, into the cache, as ``job["share"]`` says."""
    with one_thread():
        recipe, dataset = parse_recipe(job["recipe"], job["folder"]), _load(job["source"], job["id_base"])
        graph = dataset.graph.undirected()
        if job["share"] == "pretrain":
            source_vectors(recipe, graph, device=job["device"])
        else:
            prepare_cached(recipe, graph, dataset.subgraphs.nodes, seed=job["seed"])


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Train one model, or resume it, save its test predictions, and return the content of outcome.json."""
    folder = Path(job["out"])
    with locked_folder(folder), one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(OSError):  # so that peak memory is that of this run, if the system can tell
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        if _on_gpu():
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        dataset = with_split(_load(job["source"], job["id_base"]), job["split"], job["seed"])
        recipe = parse_recipe(job["recipe"], job["folder"])
        (folder / FAILURE).unlink(missing_ok=True)  # of an earlier try
        options = {name: job[name] for name in ("seed", "device", "source", "cache")}
        # Runs are side by side already, so that a portfolio fits its candidates one after the other.
        options["processes"] = 1
        result = train(dataset, recipe, folder, resume=True, report=False, **options)
        if result.interrupted:  # a portfolio answers with the candidates it has; a suite wants all of them
            raise KeyboardInterrupt
        subgraphs, targets = dataset.subgraphs, np.asarray(dataset.subgraphs.targets)
        learned, true = (targets[subgraphs.indices(split)] for split in ("train", "test"))
        guess = np.broadcast_to(task_of(subgraphs.task).constant(learned), true.shape)
        outcome = {
            **{name: job[name] for name in _FROM_JOB},
            **{name: getattr(result, name) for name in _FROM_RESULT},
            "calibration_error": _save_predictions(folder, dataset, result.device),
            "majority": score_terms(guess, true, subgraphs.task).score if len(true) else None,
            "tested": len(true),
            "total_seconds": time.perf_counter() - begin,
            **_peak_memory(),
            "commit": _commit(),
        }
        write_json(outcome, folder / OUTCOME)
        drop_weights(folder)
    if _on_gpu():
        torch.cuda.empty_cache()  # other processes may share the GPU
    return outcome


def drop_weights(folder: Path) -> None:
    """Remove the files of a finished run that no report needs: weights, node embeddings, the state of training."""
    for path in (*folder.glob("*.safetensors"), folder / SUBGRAPHS, folder / FAILURE):
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / CANDIDATES, ignore_errors=True)


def _save_predictions(folder: Path, dataset: Dataset, device: str) -> float | None:
    """Predict the test split, if there is one, and save the probabilities; returns their calibration error."""
    subgraphs = dataset.subgraphs
    rows = subgraphs.indices("test")
    if not len(rows):
        return None
    nodes = subgraphs.nodes.take(rows)
    predictor = Predictor(folder / CHECKPOINT, dataset.graph.undirected(), device=device)
    kept: dict[str, Any] = {
        "rows": rows,
        "probabilities": predictor.probabilities(nodes),
        "targets": np.asarray(subgraphs.targets)[rows],
        "units": split_units(subgraphs, subgraphs.groups)[rows],
    }
    task = task_of(subgraphs.task)
    if task.several or np.ndim(predictor.thresholds):
        kept["thresholds"] = np.asarray(predictor.thresholds, np.float32)
    with atomic_write(folder / ANSWERS, overwrite=True) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **kept)
    return calibration_error(task, kept["probabilities"], kept["targets"])


@lru_cache(maxsize=2)
def _load(source: str, id_base: int | None) -> Dataset:
    """Read a dataset; a worker's next job often has the same one."""
    return read_dataset(Path(source), id_base=id_base)


@lru_cache(maxsize=1)
def _commit() -> str:
    """The commit of the checkout that tracks the package, if there is one."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(_PACKAGE), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    with suppress(OSError, subprocess.SubprocessError):
        git("ls-files", "--error-unmatch", "__init__.py")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "HEAD") + (" with changes" if changed else "")
    return ""


def _peak_memory() -> dict[str, Any]:
    """Peak memory in MB since the measurement was restarted; since the start if the system cannot restart it."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
    gpu = torch.cuda.max_memory_allocated() / 2**20 if _on_gpu() else None
    return {"peak_memory_mb": peak, "peak_gpu_memory_mb": gpu}


def _on_gpu() -> bool:
    """Whether this process has used a GPU; asking the GPU itself would start it."""
    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
