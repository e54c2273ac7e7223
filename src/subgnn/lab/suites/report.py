"""The report of a benchmark from its table of runs: means, ranks and missing cells.

The table has one line for each run. It is that of one folder of a suite, the packaged one, or several tables, also of
other laboratories: the columns ``dataset``, ``model`` and ``micro_f1`` are needed; the others may be missing.
"""

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from subgnn.errors import DataError, choices
from subgnn.lab.suites.comparison import compare_predictions, pair_over_datasets, rank_models, read_predictions
from subgnn.lab.suites.job import FAILURE, OUTCOME
from subgnn.lab.suites.spec import FOLDS, Suite, find_suite, parse_suite
from subgnn.storage.files import atomic_write, read_json

SUITE, RUNS, PAGE, PAIRS = "suite.json", "runs", "report.html", "paired.csv"
MISSING = "—"
PROTOCOLS = {"stored": "Stored splits", "folds": "Ten folds over all subgraphs", "random": "Random splits by seed"}
REPLACE = "remove the run's folder, and run the suite again"
TABLE = "results.csv"
PACKAGED = Path(__file__).with_name(f"{TABLE}.gz")
"""Our own runs of ``subgraphbench``."""
KEY = ["dataset", "model", "variant", "protocol", "seed", "fold", "set"]
SCORES = ["micro_f1", "macro_f1", "auroc", "auprc"]
METRICS = [*SCORES, "val_micro_f1", "calibration_error", "majority"]
COST = ["seconds", "memory_mb", "gpu_memory_mb"]
COLUMNS = [*KEY, "task", *METRICS, "tested", *COST, "device", "commit", "failure"]
_MOST = 16 * 2**20  # bytes of a table
_NAME = ["dataset", "protocol", "model", "variant", "set"]
_PAIR_COLUMNS = [*_NAME, "against", "n", "lead", "low", "high", "p"]


def table_rows(suite: Suite, run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of a run, one for each model that it stands for; a ``+`` after the commit means uncommitted changes."""
    variants = {model.label: model.variant_of for model in suite.models}
    folds = run["split"] == "folds"
    about = {
        "dataset": run["dataset"],
        "protocol": "stored" if run["split"] == "published" else run["split"],
        "seed": run["seed"] // FOLDS if folds else run["seed"],
        "fold": run["seed"] % FOLDS if folds else "",
    }
    if "message" in run:
        about["failure"] = run["message"][:200]
    else:
        about |= {name: run["test"].get(name) for name in SCORES}
        about |= {name: run.get(name) for name in ("task", "calibration_error", "majority", "tested", "device")}
        about |= {
            "val_micro_f1": run["val"].get("micro_f1"),
            "commit": run["commit"][:12] + ("+" if " " in run["commit"] else ""),
            "seconds": run["total_seconds"],
            "memory_mb": run["peak_memory_mb"],
            "gpu_memory_mb": run["peak_gpu_memory_mb"],
        }
    about["set"] = " ".join(run["set"])
    named = [(label, variants.get(label, "")) for label in run["models"]]
    return [{**about, "model": of or label, "variant": label if of else ""} for label, of in named]


def append_rows(rows: Iterable[Mapping[str, Any]], out: Path) -> None:
    """Add lines to the table of a folder at once, so that a kill loses none."""
    path = out / TABLE
    new, text = not path.exists(), io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if new:
        writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{value:.5g}" if isinstance(value, float) else value for name, value in row.items()})
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())


def read_tables(paths: Sequence[Path]) -> pd.DataFrame:
    """The runs of tables or folders; of equal ones the later, but a failure does not replace a finished run."""
    whole = pd.concat([_read(path / TABLE if path.is_dir() else path) for path in paths], ignore_index=True)
    whole["_done"] = whole["failure"].eq("")
    whole = whole.sort_values("_done", kind="stable").drop_duplicates(KEY, keep="last").sort_index()
    return whole.drop(columns="_done").reset_index(drop=True)


def known_seconds(out: Path) -> dict[tuple[str, str, str], float]:
    """Median seconds of a run by dataset, model and protocol: in the suite's own table, or in the packaged one."""
    found: dict[tuple[str, str, str], float] = {}
    for path in (PACKAGED, out / TABLE):
        if path.is_file():
            table = read_tables([path])
            names = table["variant"].where(table["variant"].ne(""), table["model"])
            medians = table.assign(model=names).groupby(["dataset", "model", "protocol"])["seconds"].median().dropna()
            found |= {key: float(value) for key, value in medians.items()}
    return found


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise DataError("no such table", where=str(path), hint="benchmark run writes DIR/results.csv")
    if path.stat().st_size > _MOST:
        raise DataError("the table is larger than 16 MB", where=str(path), hint="keep one line for each run")
    try:
        found = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (ValueError, OSError, EOFError, UnicodeError) as error:
        problem = f"it cannot be read ({' '.join(str(error).split())[:100]})"
        raise DataError(problem, where=str(path), hint="accepted: .csv, .csv.gz and .parquet") from None
    missing = [name for name in ("dataset", "model", "micro_f1") if name not in found]
    if missing:
        hint = f"a line for each run; columns that are read: {', '.join(COLUMNS)}"
        raise DataError(f"the column {missing[0]} is missing", where=str(path), hint=hint)
    if "seed" not in found:
        found["seed"] = found.groupby(["dataset", "model"]).cumcount()
    found = found.reindex(columns=COLUMNS)
    numbers = ["seed", "fold", *METRICS, "tested", *COST]
    for name in numbers:
        found[name] = pd.to_numeric(found[name], errors="coerce").astype(np.float64)
    for name in (name for name in COLUMNS if name not in numbers):
        found[name] = found[name].astype(object).fillna("").astype(str)
    found["protocol"] = found["protocol"].replace("", "stored")
    bad = found["micro_f1"].lt(0) | found["micro_f1"].gt(1) | (found["micro_f1"].isna() & found["failure"].eq(""))
    if bad.any():
        line = int(np.flatnonzero(bad)[0]) + 1
        raise DataError(f"micro_f1 of run {line} is not from 0 to 1", where=str(path), hint="0.65 stands for 65 %")
    return found


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, gzipped where the name ends so; the same table gives the same bytes."""
    ordered = table.sort_values(KEY, kind="stable", na_position="first")
    ordered = ordered.assign(**{name: ordered[name].astype("Int64") for name in ("seed", "fold", "tested")})
    content = ordered.to_csv(index=False, float_format="%.5g", lineterminator="\n").encode()
    with atomic_write(path, overwrite=True) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each dataset, protocol and model: means over its runs, standard deviations, interval of micro-F1.

    The columns are ``auroc`` and ``auroc_std`` and so on; ``error`` is half the 95 % interval of ``micro_f1``.

    Of several variants of a model, the row is that of the best mean *validation* score. The interval has the variance
    of the score over test subgraphs, as if each were right or wrong by itself, and that of the mean over r seeds:
    ``1.96 * sqrt(q (1 - q) / (n + 4) + s^2 / r)`` with ``q = (p n + 2) / (n + 4)`` (Agresti and Coull), which is not 0
    where all n are right. By folds, it has the first term alone, as every subgraph is tested once.
    """
    done = with_labels(table)[table["failure"].eq("")]
    found = []
    for (dataset, protocol, label), runs in done.groupby(["dataset", "protocol", "label"], sort=False):
        mine = runs
        if runs["variant"].nunique() > 1:
            validation = runs.groupby("variant", sort=False)["val_micro_f1"].mean()
            mine = runs[runs["variant"] == validation.idxmax()] if validation.notna().any() else runs
        row: dict[str, Any] = {"dataset": dataset, "protocol": protocol, "model": label}
        row |= {"variant": mine["variant"].iloc[0], "n": len(mine)}
        row |= {name: float(mine[name].mean()) for name in (*METRICS, *COST)}
        row |= {f"{name}_std": float(mine[name].std(ddof=int(len(mine) > 1))) for name in SCORES}
        folds = protocol == "folds"
        tested = float(mine["tested"].sum() if folds else mine["tested"].mean())
        if folds and tested:
            row["micro_f1"] = float((mine["micro_f1"] * mine["tested"]).sum() / tested)
        share = (row["micro_f1"] * tested + 2) / (tested + 4)
        variance = share * (1 - share) / (tested + 4) if tested > 0 else np.nan
        variance += 0.0 if folds else row["micro_f1_std"] ** 2 / len(mine)
        found.append({**row, "error": 1.96 * float(np.sqrt(variance)), "tested": tested})
    about = ["dataset", "protocol", "model", "variant", "n", "error", "tested"]
    return pd.DataFrame(found, columns=[*about, *METRICS, *COST, *(f"{name}_std" for name in SCORES)])


def with_labels(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ``label``, by which a row is shown: the model, and its changed settings where it has several."""
    several = table.groupby("model")["set"].transform("nunique") > 1 if len(table) else table["model"].eq("")
    changed = table["model"] + " · " + table["set"]
    return table.assign(label=table["model"].where(~several | table["set"].eq(""), changed))


def pair_models(suite: Suite, outcomes: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Every model against those that the suite names in ``compare``, on each dataset."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for run in outcomes if suite.compare else ():
        for row in table_rows(suite, run):
            groups.setdefault(tuple(str(row[name]) for name in _NAME), []).append(run)
    predicted = {name: found for name, runs in groups.items() if (found := read_predictions(runs)) is not None}
    rows = []
    for name, ours in predicted.items():
        for other, theirs in predicted.items():
            if other != name and other[2] in suite.compare and (other[:2], other[4]) == (name[:2], name[4]):
                lead = compare_predictions(ours, theirs) or {}
                rows.append({**dict(zip(_NAME, name, strict=True)), "against": other[2], **lead})
    return pd.DataFrame(rows, columns=_PAIR_COLUMNS)


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """Runs, their means by dataset, protocol and model, and pairs over subgraphs; ``given`` models are put beside."""

    suite: Suite
    runs: pd.DataFrame
    summary: pd.DataFrame
    pairs: pd.DataFrame
    given: tuple[str, ...] = ()

    @property
    def protocols(self) -> list[str]:
        return [name for name in PROTOCOLS if self.runs["protocol"].eq(name).any()]

    def scores(self, protocol: str) -> pd.DataFrame:
        """Scores of models (rows) on datasets (columns), also of those that have failed runs alone; NaN if missing."""
        mine = with_labels(self.runs)
        mine = mine[mine["protocol"] == protocol]
        models = _ordered(mine["label"], [one.variant_of or one.label for one in self.suite.models])
        datasets = _ordered(mine["dataset"], [one.name for one in self.suite.datasets])
        means = self.summary[self.summary["protocol"] == protocol]
        return means.pivot(index="model", columns="dataset", values="micro_f1").reindex(index=models, columns=datasets)

    def published(self, model: str, dataset: str) -> float | None:
        known = next((one.published.micro_f1 for one in self.suite.models if one.label == model), {})
        return known.get(dataset, known.get(self.suite.like(dataset)))

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of the summary with its scores as mean and std, beside the published number and the gap to it."""
        score, known = row["micro_f1"], self.published(row["model"], row["dataset"])
        found = {name: value for name, value in row.items() if not name.endswith("_std")}
        found |= {name: {"mean": row[name], "std": row[f"{name}_std"]} for name in SCORES}
        source = next((one.published.source for one in self.suite.models if one.label == row["model"]), "")
        published = None if known is None else {"micro_f1": known, "source": source}
        return {**found, "published": published, "gap": None if known is None else score - known}

    @property
    def failed(self) -> pd.DataFrame:
        return with_labels(self.runs)[self.runs["failure"].ne("")]

    def incomplete(self) -> list[str]:
        """A line for each failed run without a finished one, missing cell, and cell with fewer seeds than stated."""
        failed = self.failed.itertuples(index=False)
        found = [f"{one.label} on {one.dataset}, seed {one.seed:.0f}: {one.failure}" for one in failed]
        seeds = {one.variant_of or one.label: one.seeds for one in self.suite.models}
        for protocol in self.protocols:
            mine = self.summary[self.summary["protocol"] == protocol]
            counts = {(one.model, one.dataset): int(one.n) for one in mine.itertuples(index=False)}
            most = max(counts.values(), default=0)
            scores = self.scores(protocol)
            for model in scores.index:
                wanted = most if protocol != "stored" else min(seeds.get(model, 0) or most, most)
                found += [
                    f"{model} on {dataset}, {PROTOCOLS[protocol].lower()}: {n} of {wanted} runs"
                    for dataset in scores.columns
                    if (n := counts.get((model, dataset), 0)) < wanted
                ]
        return found

    def to_json(self) -> dict[str, Any]:
        """The report as plain values; undefined numbers are None."""
        return {
            "suite": self.suite.name,
            "title": self.suite.title,
            "runs": int(self.runs["failure"].eq("").sum()),
            "rows": list(map(self._row, _records(self.summary))),
            "ranks": {
                name: {
                    "models": dict(zip(one.models, one.ranks, strict=True)),
                    "datasets": len(one.datasets),
                    "friedman_p": one.p,
                    "critical_difference": one.critical_difference,
                }
                for name in self.protocols
                for one in [rank_models(self.scores(name))]
            },
            "pairs": _records(self.pairs),
            "failures": _records(self.failed[["dataset", "label", "seed", "fold", "failure"]]),
            "incomplete": self.incomplete(),
        }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in found]


def _ordered(found: Iterable[str], known: Sequence[str]) -> list[str]:
    """Distinct names: those that are known in their order, each followed by those that begin with it, then others."""
    names = list(dict.fromkeys(found))
    places = {name: i for i, name in enumerate(known)}
    return sorted(names, key=lambda name: places.get(name, places.get(name.partition(" · ")[0], len(known))))


def _benchmark(suite: Suite, runs: pd.DataFrame, pairs: pd.DataFrame) -> Benchmark:
    """A benchmark whose means are in the order of the suite."""
    summary = summarize(runs)
    datasets = _ordered(summary["dataset"], [one.name for one in suite.datasets])
    models = _ordered(summary["model"], [one.variant_of or one.label for one in suite.models])
    places = {"dataset": datasets, "protocol": list(PROTOCOLS), "model": models}
    summary = summary.sort_values(list(places), key=lambda column: column.map(places[str(column.name)].index))
    return Benchmark(suite, runs, summary.reset_index(drop=True), pairs)


def read_folder(out: Path) -> Benchmark:
    """The runs of a suite's folder, also those that were copied into it; its table and pairs are written again."""
    if not (out / SUITE).is_file():
        hint = "give the folder that subgnn benchmark run wrote, or a table of runs (.csv, .csv.gz, .parquet)"
        raise DataError("this is not the folder of a suite", where=str(out), hint=hint)
    suite = parse_suite(read_json(out / SUITE, "run the suite again"), str(out / SUITE))
    outcomes, failed = list[dict[str, Any]](), list[dict[str, Any]]()  # each with its ``folder``
    for path in sorted((out / RUNS).glob("*")):
        for name, kept in ((OUTCOME, outcomes), (FAILURE, failed)):
            if (path / name).is_file():
                content = read_json(path / name, REPLACE)
                if not isinstance(content, dict) or not {"dataset", "seed", "models"} <= set(content):
                    raise DataError("this file was not written by a suite", where=str(path / name), hint=REPLACE)
                kept.append({**content, "folder": path})
                break
    rows = [row for run in (*failed, *outcomes) for row in table_rows(suite, run)]
    if not rows:
        raise DataError("there are no finished runs", where=str(out / RUNS), hint="run the suite again")
    append_rows(rows, out)
    runs = read_tables([out / TABLE])
    write_table(runs, out / TABLE)
    pairs = pair_models(suite, outcomes)
    with atomic_write(out / PAIRS, overwrite=True) as temporary:
        pairs.to_csv(temporary, index=False, float_format="%.5g", lineterminator="\n")
    return _benchmark(suite, runs, pairs)


def open_benchmark(sources: Sequence[Path]) -> Benchmark:
    """The benchmark of a folder, of tables of runs, or, without any, of the packaged table."""
    suite, pairs = find_suite("subgraphbench"), pd.DataFrame(columns=_PAIR_COLUMNS)
    if len(sources) == 1 and sources[0].is_dir():
        return read_folder(sources[0])
    if sources:
        return _benchmark(suite, read_tables(sources), pairs)
    if not PACKAGED.is_file():
        hint = "give the folder that subgnn benchmark run wrote, or a table of runs"
        raise DataError("this version has no packaged results", where="benchmark report", hint=hint)
    if (beside := PACKAGED.with_name(f"{PAIRS}.gz")).is_file():
        pairs = pd.read_csv(beside, keep_default_na=False)
    return _benchmark(suite, read_tables([PACKAGED]), pairs)


def put_beside(ours: Benchmark, paths: Sequence[Path]) -> Benchmark:
    """The benchmark with the models of tables from elsewhere, whose datasets have our names."""
    theirs = read_tables(paths)
    theirs = theirs[theirs["failure"].eq("")]
    known = {name.replace("-", "_"): name for name in ours.runs["dataset"].unique()}
    theirs = theirs.assign(dataset=theirs["dataset"].str.replace("-", "_").map(lambda name: known.get(name, name)))
    for name in theirs["dataset"].unique():
        if name not in known.values():
            what, where = f"the dataset '{name}' is not in our table", ", ".join(map(str, paths))
            raise DataError(what, where=where, hint=choices(name, known.values()))
    taken = set(ours.runs["model"])
    theirs = theirs.assign(model=[f"{one} (given)" if one in taken else one for one in theirs["model"]])
    runs = pd.concat([ours.runs, theirs], ignore_index=True)
    given = tuple(with_labels(runs).loc[len(ours.runs) :, "label"].unique())
    return replace(_benchmark(ours.suite, runs, ours.pairs), given=given)


def paired_rows(benchmark: Benchmark) -> list[dict[str, Any]]:
    """Each given model against the others over datasets, by protocol."""
    return [
        {"protocol": protocol, **row}
        for protocol in benchmark.protocols
        for scores in [benchmark.scores(protocol)]
        for model in benchmark.given
        if model in scores.index
        for row in pair_over_datasets(scores, model)
    ]


def score_text(score: float) -> str:
    """A score as papers print it.

    Example:
        >>> score_text(0.6641), score_text(1.0), score_text(float("nan"))
        ('.664', '1.000', '—')
    """
    return MISSING if pd.isna(score) else f"{score:.3f}".removeprefix("0")
