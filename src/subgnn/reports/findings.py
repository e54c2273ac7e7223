"""What a page tells of a run: what the run's folder says, and what its network answers on the split that is scored."""

from __future__ import annotations

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
from subgnn.data.subgraphs import Task
from subgnn.errors import DataError, excerpt
from subgnn.inference.predictor import Predictor
from subgnn.models.spec import Checkpoint
from subgnn.models.subgnn import SubGNN
from subgnn.models.subgnn.build import label_unit
from subgnn.reports.contribution import Contribution, contributions
from subgnn.storage.parsing import parse_json
from subgnn.training.metrics import metrics, predictions, probabilities
from subgnn.training.run_dir import CHECKPOINT, METRICS, RESULTS, read_results, read_run_recipe

_NEEDED = ("dataset", "recipe", "seed", "task", "selected_epoch", "epochs", "val", "test", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """A run and its answers.

    ``split`` is what was scored: test, or val where the dataset has no test part. Real-valued targets and outputs are
    in standard deviations of the training targets; ``in_unit`` takes them back. A baseline has neither
    network nor vectors. Of several networks, ``records``, ``network`` and ``vectors`` are those of the first, and
    ``outputs`` the mean of all; of several draws of anchors, ``vectors`` are those of the first, too.

    Shapes:
        rows: (n,) subgraphs of the split. vectors: (n, width) z_S. means: (width,) over the training split.
        outputs: (n, outputs). targets: (n,) or (n, classes); train_targets likewise.
    """

    results: dict[str, Any]
    records: list[dict[str, Any]]
    dataset: Dataset
    recipe: Recipe
    checkpoint: Checkpoint
    network: SubGNN | None
    split: str
    rows: NDArray[np.int64]
    vectors: Tensor
    means: Tensor
    outputs: Tensor
    targets: Tensor
    train_targets: Tensor

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.checkpoint.spec.task

    @property
    def networks(self) -> int:
        """How many networks answer; 1 for a baseline."""
        return self.checkpoint.spec.members

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; none for regression."""
        return self.checkpoint.spec.classes

    def contributions(self) -> list[Contribution]:
        """What each part of the subgraphs' vectors contributes; nothing for a baseline, which has no parts."""
        if self.network is None:
            return []
        return contributions(
            self.network.head,
            self.network.parts(),
            vectors=self.vectors,
            means=self.means,
            targets=self.targets,
            task=self.task,
        )

    def predicted(self) -> NDArray[Any]:
        """Classes (n,), sets of classes (n, classes), or values (n,)."""
        return predictions(self.outputs, self.task).numpy()

    def probabilities(self) -> NDArray[np.float32]:
        """Probabilities of classes (n, classes)."""
        return probabilities(self.outputs, self.task).numpy()

    def in_unit(self, values: Tensor) -> NDArray[np.float64]:
        """Real values (n,) in their own unit."""
        target = self.checkpoint.spec.standards["target"]
        return np.asarray(values.numpy() * target.deviation[0] + target.mean[0])

    def scored_again(self) -> dict[str, float]:
        """Metrics of the split, from the answers at hand."""
        return metrics(self.outputs, self.targets, self.task, unit=label_unit(self.checkpoint.spec.standards))

    def constant(self) -> dict[str, float]:
        """Metrics on the same split of a guess that looks at nothing.

        Every subgraph gets the most frequent training class; with several labels each, the most frequent label alone;
        for real values, the mean.
        """
        guess = torch.full_like(self.outputs, -1.0)
        if self.task == "regression":
            guess[:] = self.train_targets.mean()
        elif self.task == "multi-label":
            guess[:, self.train_targets.sum(dim=0).argmax()] = 1.0
        else:
            guess[:, torch.bincount(self.train_targets.long()).argmax()] = 1.0
        return metrics(guess, self.targets, self.task, unit=label_unit(self.checkpoint.spec.standards))


@torch.no_grad()
def find(run: Path, dataset: Dataset, *, vectors: NDArray[np.float32] | None = None) -> Findings:
    """Read a finished run and ask it about its dataset.

    Args:
        vectors: z_S of all subgraphs of the dataset, where they are at hand; by default they are computed.

    Raises:
        DataError: where the run is not finished or damaged, or the dataset is another one.
    """
    results, records = _results(run), read_records(run / METRICS)
    # Of several candidates, the page tells of the one that was kept; of several networks, of the first.
    told = "member 0" if "members" in results else results.get("candidate")
    records = [r for r in records if r.get("candidate") == told]
    if not records:
        raise DataError("there are no epochs of what was kept", where=str(run / METRICS), hint="train again")
    predictor = Predictor(run / CHECKPOINT, dataset.graph.undirected())
    checkpoint, subgraphs = predictor.checkpoint, dataset.subgraphs
    if (subgraphs.task, subgraphs.classes) != (
        checkpoint.spec.task,
        checkpoint.spec.classes,
    ) or subgraphs.targets is None:
        raise DataError("the dataset has other labels than the run", where=dataset.name, hint="give the run's dataset")
    split = "test" if len(subgraphs.indices("test")) else "val"
    rows, train = subgraphs.indices(split), subgraphs.indices("train")
    network = next(iter(predictor.networks()), None)
    mine = means = torch.empty(0)
    if network is None:
        outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes.take(rows)))
    elif vectors is None:
        chosen = np.concatenate([rows, train])
        embedded = torch.from_numpy(predictor.embeddings(subgraphs.nodes.take(chosen)))
        mine, means = embedded[: len(rows)], embedded[len(rows) :].mean(dim=0)
    else:
        mine, means = torch.from_numpy(vectors[rows]), torch.from_numpy(vectors[train]).mean(dim=0)
    targets = np.array(subgraphs.targets)
    if "target" in checkpoint.spec.standards:
        targets = checkpoint.spec.standards["target"](targets[:, None])[:, 0]
    if predictor.members * predictor.draws > 1:
        outputs = torch.from_numpy(predictor.outputs(subgraphs.nodes.take(rows)))
    elif network is not None:
        outputs = network.head(mine)
    return Findings(
        results=results,
        records=records,
        dataset=dataset,
        recipe=read_run_recipe(run),
        checkpoint=checkpoint,
        network=network,
        split=split,
        rows=rows,
        vectors=mine,
        means=means,
        outputs=outputs,
        targets=torch.from_numpy(targets[rows]),
        train_targets=torch.from_numpy(targets[train]),
    )


def _results(run: Path) -> dict[str, Any]:
    results = read_results(run)
    missing = [name for name in _NEEDED if name not in results]
    if missing:
        where = str(run / RESULTS)
        raise DataError(f"'{missing[0]}' is missing", where=where, hint="the run is damaged; train again")
    figures = {f"{part}.{name}": value for part in ("val", "test") for name, value in results[part].items()}
    figures |= {f"seconds.{name}": results["seconds"].get(name, "") for name in ("prepare", "train", "epoch_median")}
    wrong = [name for name, value in figures.items() if not (value is None or isinstance(value, (int, float)))]
    members = results.get("members", [])
    if not isinstance(members, list) or not all(isinstance(one, dict) and "selected_epoch" in one for one in members):
        wrong.append("members")
    if wrong:
        what = f"{excerpt(wrong[0])} is missing, or of a wrong kind"
        raise DataError(what, where=str(run / RESULTS), hint="the run is damaged; train again")
    return results


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
            hint = "a line an epoch is needed; the run is damaged"
            raise DataError("this is no record of an epoch", where=f"{path}:{number}", hint=hint) from None
        records.append({**record, "epoch": epoch, "train_loss": losses[0], "val_loss": losses[1]})
    if not records:
        raise DataError("there are no epochs", where=str(path), hint="the run is damaged; train again")
    return records
