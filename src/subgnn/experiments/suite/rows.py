"""What the runs of a suite came to: a row for each dataset and model, and for each value of a varied setting."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from subgnn.errors import DataError
from subgnn.experiments.suite.jobs import FAILURE, OUTCOME
from subgnn.experiments.suite.significance import sign_flip_test
from subgnn.experiments.suite.spec import SPLIT_WORDS, Suite
from subgnn.training.run_dir import read_json, without_standardised_errors

_REPLACE = "remove the run's folder, and run the suite again"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Runs that differ in their seed alone, in order of it; ``label`` is the model's, distinct where it must be."""

    dataset: str
    model: str
    setting: str
    value: str
    config: str
    runs: tuple[dict[str, Any], ...]
    label: str = ""

    def scores(self, split: str, metric: str) -> dict[int, float]:
        """A metric by seed; not a number where a run has none."""
        return {run["seed"]: _number(run[split].get(metric)) for run in self.runs}

    @property
    def metric(self) -> str:
        """What is compared: micro-F1, or R^2 for real values."""
        return "r2" if self.runs[0]["task"] == "regression" else "micro_f1"


def read_runs(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Outcomes of finished runs and failures of others, each with its ``folder``.

    Args:
        folder: ``runs`` of a suite.
    """
    found: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*")):
        for name, kept in ((OUTCOME, found), (FAILURE, failed)):
            if (path / name).is_file():
                content = read_json(path / name, _REPLACE)
                if not isinstance(content, dict) or not {"dataset", "seed", "entries", "config"} <= set(content):
                    raise DataError("this is not what a suite writes", where=str(path / name), hint=_REPLACE)
                kept.append({**without_standardised_errors(content), "folder": path})
                break
    return found, failed


def group_runs(suite: Suite, outcomes: Iterable[dict[str, Any]]) -> list[Group]:
    """Runs by dataset, model, setting and value, in the suite's order; of equal runs, as after copying, one."""
    groups: dict[tuple[str, str, str, str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for run in outcomes:
        for entry in run["entries"]:
            key = (run["dataset"], entry["model"], entry["setting"], entry["value"], run["config"])
            groups[key].setdefault(run["seed"], run)
    datasets, models = [d.name for d in suite.datasets], [m.label for m in suite.models]
    values = [("", "")] + [(s.name, value) for s in suite.settings for value in s.values]

    def order(key: tuple[str, ...]) -> tuple[Any, ...]:
        return _place(key[0], datasets), _place(key[1], models), _place((key[2], key[3]), values), key

    found = [Group(*key, tuple(run for _, run in sorted(groups[key].items()))) for key in sorted(groups, key=order)]
    return [replace(group, label=label) for group, label in zip(found, _labels(found), strict=True)]


def table_rows(suite: Suite, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """A row for each dataset and model as the suite has it."""
    plain = [group for group in groups if not group.setting]
    return [_row(suite, group, _best_baseline(suite, group, plain)) for group in plain]


def _row(suite: Suite, group: Group, rival: Group | None) -> dict[str, Any]:
    first, spec = group.runs[0], {m.label: m for m in suite.models}.get(group.model)
    published: dict[str, Any] = {}
    if spec is not None:
        for name in ("micro_f1", "micro_f1_std", "auroc", "auroc_std"):
            known = getattr(spec.published, name)
            number = known.get(group.dataset, known.get(suite.like(group.dataset)))
            published |= {name: float(number)} if number is not None else {}
        published |= {"source": spec.published.source} if published else {}
    test = {name: spread(group.scores("test", name).values()) for name in first["test"]}
    nothing: dict[str, float | None] = {"mean": None, "std": None}
    ours = {name: test.get(name, nothing) for name in ("micro_f1", "auroc")}
    seconds = [sum(run["seconds"][part] for part in ("pretrain", "prepare", "train")) for run in group.runs]
    gpu = [run["peak_gpu_memory_mb"] for run in group.runs if run.get("peak_gpu_memory_mb")]
    return {
        "dataset": group.dataset,
        "model": group.label,
        "baseline": bool(spec and spec.baseline),
        "protocol": SPLIT_WORDS[first["split"]],
        "n": len(group.runs),
        "seeds": [run["seed"] for run in group.runs],
        **ours,
        "val": {name: spread(group.scores("val", name).values()) for name in first["val"]},
        "test": test,
        "majority": spread(_number(run.get("majority")) for run in group.runs)["mean"],
        "published": published or None,
        "gap": _gap(ours["micro_f1"], published.get("micro_f1")),
        "gap_auroc": _gap(ours["auroc"], published.get("auroc")),
        "against": _against(group, rival),
        "seconds": {"mean": fmean(seconds), "std": pstdev(seconds)},
        "peak_memory_mb": max(run["peak_memory_mb"] for run in group.runs),
        "peak_gpu_memory_mb": max(gpu) if gpu else None,
        "chosen": dict(Counter(run["candidate"] for run in group.runs if run.get("candidate"))),
        "method": first["method"],
        "task": first["task"],
        "set": first["set"],
        "config": group.config,
        "devices": sorted({run["device"] for run in group.runs}),
        "runs": [run["folder"].name for run in group.runs],
    }


def _best_baseline(suite: Suite, group: Group, plain: Sequence[Group]) -> Group | None:
    """Of the baselines on the same dataset, the one with the highest mean on test, the hardest to beat; not itself."""
    baselines = {m.label for m in suite.models if m.baseline}
    if group.model in baselines:
        return None
    rivals = [g for g in plain if g.dataset == group.dataset and g.model in baselines]
    scores = [(spread(g.scores("test", g.metric).values())["mean"], g) for g in rivals]
    defined = [(mean, g) for mean, g in scores if mean is not None]
    return max(defined, key=lambda pair: pair[0])[1] if defined else None


def _against(group: Group, rival: Group | None) -> dict[str, Any] | None:
    """The lead over a rival on the seeds that both have."""
    if rival is None:
        return None
    differences = paired(group.scores("test", group.metric), rival.scores("test", rival.metric))
    if not differences:
        return None
    lead = spread(differences)
    return {"model": rival.label, "lead": lead["mean"], "n": len(differences), "p": sign_flip_test(differences)}


def setting_rows(suite: Suite, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """For each value of a varied setting, the change of the validation score against the unchanged model.

    The change is the mean over the seeds that both have. Where the suite was run with several overrides, each value is
    compared with the unchanged model of the same ones.
    """
    bases = {(g.dataset, g.model, tuple(g.runs[0]["set"])): g for g in groups if not g.setting}
    matters = {setting.name for setting in suite.settings if setting.matters}
    names, rows = [setting.name for setting in suite.settings], []
    for group in sorted(groups, key=lambda g: (g.dataset, _place(g.setting, names))):
        base = bases.get((group.dataset, group.model, tuple(group.runs[0]["set"])))
        if not group.setting or base is None:
            continue
        changes = paired(group.scores("val", group.metric), base.scores("val", base.metric))
        rows.append(
            {
                "dataset": group.dataset,
                "model": group.model,
                "setting": group.setting,
                "value": group.value,
                "matters": group.setting in matters,
                "same_as_base": group.config == base.config,
                "n": len(changes),
                "val": spread(group.scores("val", group.metric).values()),
                "change": spread(changes),
                "set": group.runs[0]["set"],
            }
        )
    return rows


def paired(ours: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """Differences by seed."""
    return [ours[seed] - theirs[seed] for seed in sorted(ours) if seed in theirs]


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Mean and population deviation; undefined where one of the values is, or there is none."""
    every = list(values)
    if not every or not all(math.isfinite(value) for value in every):
        return {"mean": None, "std": None}
    return {"mean": fmean(every), "std": pstdev(every)}


def _gap(ours: dict[str, float | None], published: float | None) -> float | None:
    return None if ours["mean"] is None or published is None else ours["mean"] - published


def _labels(groups: Sequence[Group]) -> list[str]:
    """The model's label; of several configurations of it on one dataset, with what tells them apart."""
    same = defaultdict(list)
    for group in groups:
        same[group.dataset, group.model, group.setting, group.value].append(" ".join(group.runs[0]["set"]))
    found = []
    for group in groups:
        changes = same[group.dataset, group.model, group.setting, group.value]
        mine = " ".join(group.runs[0]["set"])
        mark = mine if changes.count(mine) == 1 else f"{mine} {group.config[:8]}".strip()
        found.append(f"{group.model} · {mark}" if len(changes) > 1 and mark else group.model)
    return found


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


def _place(name: Any, known: Sequence[Any]) -> int:
    return known.index(name) if name in known else len(known)
