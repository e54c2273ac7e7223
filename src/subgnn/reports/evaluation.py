"""Evaluate a run for its page: its result, its epochs, and its outputs on the split that is scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subgnn.config.settings import Recipe
from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import subgraph_keys
from subgnn.errors import DataError
from subgnn.inference.predictor import Predictor
from subgnn.models.auto import mean_scores
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import SubGNN
from subgnn.result import RunResult, read_result
from subgnn.storage.files import parse_json
from subgnn.task import Task, task_of
from subgnn.training.options import TrainedRun
from subgnn.training.portfolio import CANDIDATES, read_candidate
from subgnn.training.run_dir import CHECKPOINT, METRICS, check_subgraphs, read_run_recipe, read_trained_on

SPLIT_NAMES = {"train": "training", "val": "validation", "test": "test"}
FOLDS = "folds"


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """A run and its outputs; real values are in standard deviations of the training targets."""

    result: RunResult
    records: list[dict[str, Any]]  # epochs; in an ensemble, of the first network
    dataset: Dataset
    recipe: Recipe
    predictor: Predictor
    network: SubGNN | None  # the first one; of a portfolio, that of its heaviest member with channels
    split: str  # that was scored: test or, without it, val; for a portfolio then :data:`FOLDS`, the first repeat
    rows: NDArray[np.int64]  # (n,) subgraphs of the split
    outputs: Tensor  # (n, outputs)
    targets: Tensor  # (n,) or (n, classes)
    train_targets: Tensor
    out_of_fold: tuple[NDArray[np.float64], NDArray[Any]] | None  # probabilities and targets of all repeats

    @property
    def shown(self) -> Checkpoint:
        """The checkpoint of the network, or of the whole model if it has none."""
        whole, member = self.predictor.checkpoint, self.predictor.member_with_channels
        return whole if member is None else whole.parts[member]

    @property
    def task(self) -> Task:
        return task_of(self.predictor.spec.task)

    @property
    def scored_on(self) -> str:
        return "held-out folds" if self.split == FOLDS else f"{SPLIT_NAMES[self.split]} split"

    @property
    def classes(self) -> tuple[str, ...]:
        return self.predictor.spec.classes

    def predicted(self) -> NDArray[Any]:
        """Classes (n,), sets of classes (n, classes), or values (n,)."""
        return self.task.predictions(self.outputs, self.predictor.thresholds).numpy()

    def probabilities(self) -> NDArray[np.float32]:
        return self.task.probabilities(self.outputs).numpy()

    def in_unit(self, values: Tensor) -> NDArray[np.float64]:
        """Real values (n,) in the unit of the labels."""
        target = self.predictor.spec.standards["target"]
        return np.asarray(values.numpy() * target.deviation[0] + target.mean[0])

    def constant(self) -> dict[str, float]:
        """Metrics on the same split of always predicting the same (:meth:`~subgnn.task.Task.constant`)."""
        constant = self.task.constant(self.train_targets.numpy())
        # An output of 1 is a decision for a class, and 0 one against it.
        guess = torch.from_numpy(self.task.indicators(constant[None], self.outputs.shape[1])).expand(self.outputs.shape)
        unit = label_unit(self.predictor.spec.standards)
        return self.task.metrics(guess, self.targets, select_by=self.result.select_by, unit=unit)


def evaluate_run(run: Path, dataset: Dataset) -> Evaluation:
    """Read a finished run, and compute its outputs on its dataset."""
    result = read_result(run)
    records = [] if result.is_portfolio else read_records(run / METRICS)
    keys, hint = subgraph_keys(read_trained_on(run).subgraphs), "give the dataset as it was, or train again"
    check_subgraphs(keys, dataset.subgraphs, dataset.name, hint)
    predictor = Predictor(run / CHECKPOINT, dataset.graph.undirected())
    checkpoint, subgraphs = predictor.checkpoint, dataset.subgraphs
    same = (subgraphs.task, subgraphs.classes) == (checkpoint.spec.task, checkpoint.spec.classes)
    if not same or subgraphs.targets is None:
        what = "the dataset has different labels from the run"
        raise DataError(what, where=dataset.name, hint="give the run's dataset")
    folds = None  # a portfolio has them, unless its candidates have been removed
    if result.is_portfolio and (run / CANDIDATES).is_dir():
        members = [read_candidate(run, name) for name in checkpoint.parts]
        rows, repeats = members[0][1], max(len(predictions) for predictions, _ in members)
        cycled = [predictions[np.arange(repeats) % len(predictions)].astype(np.float64) for predictions, _ in members]
        weights, target = checkpoint.weights, checkpoint.spec.standards.get("target")
        mixed = mean_scores(cycled, weights["member_weights"].tolist())
        folds = task_of(checkpoint.spec.task).calibrated(mixed, weights["scale"], weights["offset"], target), rows
    found = TrainedRun(result, read_run_recipe(run), checkpoint, predictor.tables, records=records, out_of_fold=folds)
    return evaluate(found, dataset, predictor, where=str(run / METRICS))


@torch.no_grad()
def evaluate(
    run: TrainedRun, dataset: Dataset, predictor: Predictor | None = None, *, where: str = METRICS
) -> Evaluation:
    """Evaluate a run in memory; missing outputs are computed. ``where`` its epochs are from, for errors."""
    predictor = predictor or Predictor(run.checkpoint, dataset.graph.undirected(), tables=run.tables)
    spec, subgraphs, folds, network = run.checkpoint.spec, dataset.subgraphs, run.out_of_fold, None
    split = "val" if subgraphs.splits is None or not len(subgraphs.indices("test")) else "test"
    if split == "val" and folds is not None:  # the members of the final answer have seen all subgraphs
        split, rows, train, outputs = FOLDS, folds[1], folds[1], folds[0][0].astype(np.float32)
    else:
        rows, train = subgraphs.indices(split), subgraphs.indices("train")
        outputs = predictor.outputs(subgraphs.nodes.take(rows)) if run.outputs is None else run.outputs
        network = next(iter(predictor.networks()), None)
    targets, joined, records = target_tensor(subgraphs, spec.standards), None, []
    if folds is not None and spec.classes:
        flat = torch.from_numpy(folds[0].reshape(-1, folds[0].shape[-1]))
        joined = task_of(spec.task).probabilities(flat).numpy(), targets[np.tile(folds[1], len(folds[0]))].numpy()
    if not run.result.is_portfolio:
        selected = "member 0" if run.result.members else run.result.candidate or None
        records = [record for record in run.records if record.get("candidate") == selected]
        if not records:
            raise DataError("no epochs of the selected model are recorded", where=where, hint="train again")
    about = run.result, records, dataset, run.recipe, predictor, network
    return Evaluation(*about, split, rows, torch.from_numpy(outputs), targets[rows], targets[train], joined)


def read_records(path: Path) -> list[dict[str, Any]]:
    """The epochs of metrics.jsonl."""
    try:
        lines: Sequence[str] = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise DataError("the epochs cannot be read", where=str(path), hint="the run is damaged; train again") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line, where=f"{path}:{number}", hint="")
            epoch, losses = int(record["epoch"]), [float(record[name]) for name in ("train_loss", "val_loss")]
        except (ArithmeticError, DataError, KeyError, RecursionError, TypeError, ValueError):
            hint = "one line per epoch is needed; the run is damaged"
            raise DataError("this is not a record of an epoch", where=f"{path}:{number}", hint=hint) from None
        records.append({**record, "epoch": epoch, "train_loss": losses[0], "val_loss": losses[1]})
    if not records:
        raise DataError("no epochs are recorded", where=str(path), hint="the run is damaged; train again")
    return records
