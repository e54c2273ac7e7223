"""The report of a suite: report.json, report.md and report.html, made from the folders of its runs alone.

Its rows are the scores of each model on each dataset, and their changes by varied settings.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from subgnn.errors import DataError
from subgnn.lab.suites.page import suite_texts
from subgnn.lab.suites.results import (
    Group,
    ScoredGroup,
    compare,
    group_runs,
    number,
    overlap_bins,
    paired,
    place,
    random_score,
    read_runs,
    reliability,
    score_group,
    spread,
    standings,
)
from subgnn.lab.suites.spec import SPLIT_WORDS, ModelSpec, Suite, parse_suite
from subgnn.storage.files import atomic_write, read_json, write_json

JSON, MARKDOWN, PAGE = "report.json", "report.md", "report.html"
SELECTION = (
    "the epoch with the highest validation micro-F1 (real values: the lowest validation loss), then the lowest "
    "validation loss, then the earliest; validation also decides the choices that a recipe leaves open. A portfolio "
    "chooses by out-of-fold predictions. The test split is scored once"
)
TEST = (
    "paired sign-flip test over seeds, two-sided, exact up to 15 seeds; with a stored split also a paired "
    "randomisation test over subgraphs; no correction for several comparisons"
)
FOLDS_TEST = (
    "paired randomisation test over subgraphs, two-sided: swaps of two models' predictions (McNemar's exact test for "
    "one class per subgraph), those of one group together; no correction for several comparisons"
)


def write_suite_report(out: Path) -> dict[str, Any]:
    """Write the three files into a suite's folder, and return the content of report.json."""
    if not (out / "suite.json").is_file():
        hint = "subgnn benchmark run SUITE --out DIR writes one"
        raise DataError("this is not the folder of a suite", where=str(out), hint=hint)
    content = read_json(out / "suite.json", "run the suite again")
    suite = parse_suite(content, str(out / "suite.json"))
    outcomes, failed = read_runs(out / "runs")
    if not outcomes and not failed:
        raise DataError("there are no finished runs", where=str(out / "runs"), hint="run the suite again")
    groups = group_runs(suite, outcomes)
    found = collect(suite, groups, outcomes, failed)
    write_json(found, out / JSON)
    for name, text in zip((PAGE, MARKDOWN), suite_texts(found), strict=True):
        with atomic_write(out / name, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return found


def collect(
    suite: Suite, groups: Sequence[Group], outcomes: Sequence[dict[str, Any]], failed: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The content of report.json; undefined numbers are None."""
    plain = [group for group in groups if not group.setting]
    rows = table_rows(suite, plain)
    seeds = {model.label: model.seeds for model in suite.models if suite.protocol.split != "folds"}
    highest = max((row["n"] for row in rows), default=0)
    most = {row["model"]: min(seeds.get(row["model"], 0) or highest, highest) for row in rows}
    return {
        "suite": suite.name,
        "title": suite.title,
        "study": suite.study,
        "note": " ".join(suite.note.split()),
        "protocol": {
            "split": suite.protocol.words,
            "selection": SELECTION,
            "seeds": sorted({run["seed"] for run in outcomes}),
            "test": FOLDS_TEST if suite.protocol.split == "folds" else TEST,
        },
        "circumstances": _circumstances(outcomes),
        "runs": len(outcomes),
        "compare": list(suite.compare),
        "rows": rows,
        "standings": standings(rows),
        "as_published": as_published_rows(suite, plain),
        "references": [asdict(reference) for reference in suite.references],
        "settings": setting_rows(suite, groups) if suite.study == "sensitivity" else [],
        "generalization": _generalization(plain) if suite.study == "generalization" else [],
        "failures": [_failure(run, entry) for run in failed for entry in run["entries"]],
        "missing": [
            f"{row['model']} on {row['dataset']}: {row['n']} of {most[row['model']]} runs"
            for row in rows
            if row["n"] < most[row["model"]]
        ],
        "left_out": [d.name for d in suite.datasets if d.name not in {run["dataset"] for run in [*outcomes, *failed]}],
    }


def _circumstances(outcomes: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    def distinct(values: Iterable[str]) -> list[str]:
        return sorted({value for value in values if value})

    return {
        "commits": distinct(run["commit"] for run in outcomes),
        "source_hashes": distinct(run["source_hash"] for run in outcomes),
        "versions": distinct(", ".join(f"{k} {v}" for k, v in run["versions"].items()) for run in outcomes),
        "hardware": distinct(run["hardware"] for run in outcomes),
        "devices": distinct(run["device"] for run in outcomes),
        "commands": distinct(run["command"] for run in outcomes),
        "warnings": distinct(f"{run['dataset']}: {words}" for run in outcomes for words in run["warnings"]),
    }


def _generalization(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [
        {
            "dataset": group.dataset,
            "model": group.label,
            "n": len(group.runs),
            "majority": spread(run["majority"] for run in group.runs if run["majority"] is not None)["mean"],
            "random": random_score(group),
            "bins": overlap_bins(group),
        }
        for group in groups
    ]


def _failure(run: dict[str, Any], entry: dict[str, str]) -> dict[str, Any]:
    changed = {"setting": entry["setting"], "value": entry["value"]} if entry["setting"] else {}
    about = {"dataset": run["dataset"], "model": entry["model"], **changed, "seed": run["seed"]}
    return {**about, "message": run["message"], "run": run["folder"].name}


def table_rows(suite: Suite, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """A row for each dataset and model of the suite."""
    scored = [score_group(group) for group in groups]
    return [_row(suite, ours, _rivals(suite, ours, scored)) for ours in scored]


def _row(suite: Suite, scored: ScoredGroup, rivals: Sequence[ScoredGroup]) -> dict[str, Any]:
    group = scored.group
    first, spec = group.runs[0], {m.label: m for m in suite.models}.get(group.model)
    published = _published(suite, spec, group.dataset)
    test = {name: group.spread("test", name) for name in first["test"]}
    test |= {group.metric: scored.score} if group.metric in test else {}
    nothing: dict[str, float | None] = {"mean": None, "std": None}
    ours = {name: test.get(name, nothing) for name in ("micro_f1", "auroc")}
    seconds = [sum(run["seconds"].get(part, 0.0) for part in ("pretrain", "prepare", "train")) for run in group.runs]
    gpu = [run["peak_gpu_memory_mb"] for run in group.runs if run.get("peak_gpu_memory_mb")]
    comparisons = [entry for rival in rivals for entry in compare(scored, rival)]
    best = rivals[0].group.label if rivals and not (spec and spec.baseline) else None
    calibrated = reliability(group)
    return {
        "dataset": group.dataset,
        "model": group.label,
        "baseline": bool(spec and spec.baseline),
        "protocol": SPLIT_WORDS[first["split"]],
        "n": len(group.runs),
        "seeds": [run["seed"] for run in group.runs],
        "score": scored.score,
        "interval": scored.interval,
        **ours,
        "val": {name: group.spread("val", name) for name in first["val"]},
        "test": test,
        "majority": spread(number(run.get("majority")) for run in group.runs)["mean"],
        "published": published or None,
        "gap": _gap(ours["micro_f1"], published.get("micro_f1")),
        "gap_auroc": _gap(ours["auroc"], published.get("auroc")),
        "against": next((entry for entry in comparisons if entry["model"] == best), None),
        "comparisons": comparisons,
        "calibration_error": None if calibrated is None else calibrated[1],
        "seconds": {"mean": fmean(seconds), "std": pstdev(seconds)},
        "peak_memory_mb": max(run["peak_memory_mb"] for run in group.runs),
        "peak_gpu_memory_mb": max(gpu) if gpu else None,
        "chosen": dict(Counter(run["candidate"] for run in group.runs if run.get("candidate"))),
        "portfolio": _portfolio(group),
        "rules": dict(Counter(run["portfolio"]["chosen"] for run in group.runs if run.get("portfolio"))),
        "method": first["method"],
        "task": group.task.name,
        "set": first["set"],
        "config": group.config,
        "devices": sorted({run["device"] for run in group.runs}),
        "runs": [run["folder"].name for run in group.runs],
    }


def as_published_rows(suite: Suite, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """For each model whose runs were also selected by the rule of its authors, both readings of the same runs.

    ``errors`` is the distance from the published number in standard errors of our mean over seeds; None where all
    seeds have the same score.
    """
    specs, found = {m.label: m for m in suite.models}, []
    for group in groups:
        runs = [run for run in group.runs if run.get("as_published")]
        if not runs:
            continue
        known = _published(suite, specs.get(group.model), group.dataset)
        theirs, ours = (
            _with_error([run["test"]["micro_f1"] for run in some], known.get("micro_f1"))
            for some in ([run["as_published"] for run in runs], runs)
        )
        found.append(
            {
                "dataset": group.dataset,
                "model": f"{group.label}, selected as published",
                "rule": runs[0]["as_published"]["rule"],
                "n": len(runs),
                "published": known or None,
                "by_their_rule": theirs,
                "on_validation": ours,
                "difference": theirs["mean"] - ours["mean"],
            }
        )
    return found


def _with_error(scores: Sequence[float], published: float | None) -> dict[str, Any]:
    """Mean, standard error of the mean, and the distance from the published number in standard errors."""
    mean, error = fmean(scores), pstdev(scores) / math.sqrt(len(scores))
    gap = None if published is None else mean - published
    return {"mean": mean, "error": error, "gap": gap, "errors": None if gap is None or not error else gap / error}


def _portfolio(group: Group) -> list[dict[str, Any]]:
    """Candidates of a portfolio, means over runs: out-of-fold score, weight and seconds; the largest weight first."""
    found = defaultdict(list)
    for run in group.runs:
        for one in (run.get("portfolio") or {}).get("leaderboard", ()):
            found[one["name"]].append(one)
    means: list[dict[str, Any]] = []
    for name, entries in found.items():
        known = {key: [one[key] for one in entries if one[key] is not None] for key in ("score", "weight", "seconds")}
        numbers = {key: fmean(values) if values else None for key, values in known.items()}
        means.append({"name": name, "n": len(entries), **numbers})
    return sorted(means, key=lambda one: (-(one["weight"] or 0.0), -(one["score"] or 0.0), one["name"]))


def _published(suite: Suite, spec: ModelSpec | None, dataset: str) -> dict[str, Any]:
    """The published numbers of a model on a dataset, and their source; empty if there are none."""
    found: dict[str, Any] = {}
    if spec is not None:
        for name in ("micro_f1", "micro_f1_std", "auroc", "auroc_std"):
            known = getattr(spec.published, name)
            number = known.get(dataset, known.get(suite.like(dataset)))
            found |= {name: float(number)} if number is not None else {}
        found |= {"source": spec.published.source} if found else {}
    return found


def _rivals(suite: Suite, ours: ScoredGroup, scored: Sequence[ScoredGroup]) -> list[ScoredGroup]:
    """What a model is compared with on its dataset and split: the best baseline, then those that the suite names.

    The best baseline is that of the model's group with the highest mean test score; a baseline has none.
    """
    specs = {model.label: model for model in suite.models}
    mine = specs.get(ours.group.model)
    here = [
        other
        for other in scored
        if other is not ours and (other.group.dataset, other.group.split) == (ours.group.dataset, ours.group.split)
    ]
    best: list[tuple[float, ScoredGroup]] = []
    for other in [] if mine and mine.baseline else here:
        spec, mean = specs.get(other.group.model), other.score["mean"]
        if spec and spec.baseline and spec.group == (mine.group if mine else "") and mean is not None:
            best.append((mean, other))
    first = [max(best, key=lambda pair: pair[0])[1]] if best else []
    return first + [other for other in here if other.group.model in suite.compare and other not in first]


def setting_rows(suite: Suite, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """For each value of a varied setting, the change of the validation score against the unchanged model.

    The change is the mean over the seeds that both have. If the suite was run with several overrides, each value is
    compared with the unchanged model under the same ones.
    """
    bases = {(g.dataset, g.model, tuple(g.runs[0]["set"])): g for g in groups if not g.setting}
    matters = {setting.name for setting in suite.settings if setting.matters}
    names, rows = [setting.name for setting in suite.settings], []
    for group in sorted(groups, key=lambda g: (g.dataset, place(g.setting, names))):
        base = bases.get((group.dataset, group.model, tuple(group.runs[0]["set"])))
        if not group.setting or base is None:
            continue
        changes = paired(group, base, "val")
        rows.append(
            {
                "dataset": group.dataset,
                "model": group.model,
                "setting": group.setting,
                "value": group.value,
                "matters": group.setting in matters,
                "same_as_base": group.config == base.config,
                "n": len(changes),
                "val": group.spread("val", group.metric),
                "change": spread(changes),
                "set": group.runs[0]["set"],
            }
        )
    return rows


def _gap(ours: dict[str, float | None], published: float | None) -> float | None:
    return None if ours["mean"] is None or published is None else ours["mean"] - published
