"""The report of a benchmark from its table of runs: means, ranks and missing cells.

The table is that of one folder of a suite, the packaged one, or several tables of any origin.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from subgnn.errors import DataError, choices
from subgnn.lab.suites.comparison import PAIR_COLUMNS, Ranking, pair_models, pair_over_datasets, rank_models
from subgnn.lab.suites.job import FAILURE, OUTCOME
from subgnn.lab.suites.spec import Suite, find_suite, parse_suite
from subgnn.lab.suites.table import (
    PACKAGED,
    TABLE,
    append_rows,
    read_tables,
    summarize,
    table_rows,
    with_labels,
    write_table,
)
from subgnn.storage.files import atomic_write, read_json

SUITE, RUNS, PAGE, PAIRS = "suite.json", "runs", "report.html", "paired.csv"
MISSING = "—"
PROTOCOLS = {"stored": "Stored splits", "folds": "Ten folds over all subgraphs", "random": "Random splits by seed"}
_BENCHMARK = "subgraphbench"
REPLACE = "remove the run's folder, and run the suite again"


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """The runs of a benchmark, their means by dataset, protocol and model, and pairs of models over subgraphs.

    ``given`` are the models that were put beside those of the benchmark.
    """

    suite: Suite
    runs: pd.DataFrame
    summary: pd.DataFrame
    pairs: pd.DataFrame
    given: tuple[str, ...] = ()

    @property
    def protocols(self) -> list[str]:
        """The protocols that have runs."""
        return [name for name in PROTOCOLS if self.runs["protocol"].eq(name).any()]

    def scores(self, protocol: str) -> pd.DataFrame:
        """Scores of models (rows) on datasets (columns), also of those that have failed runs alone; NaN if missing."""
        mine = with_labels(self.runs)
        mine = mine[mine["protocol"] == protocol]
        models = _ordered(mine["label"], [one.variant_of or one.label for one in self.suite.models])
        datasets = _ordered(mine["dataset"], [one.name for one in self.suite.datasets])
        means = self.summary[self.summary["protocol"] == protocol]
        return means.pivot(index="model", columns="dataset", values="score").reindex(index=models, columns=datasets)

    def ranking(self, protocol: str) -> Ranking:
        """Mean ranks over the datasets of a protocol."""
        return rank_models(self.scores(protocol))

    def published(self, model: str, dataset: str) -> float | None:
        """The published micro-F1 of a model on a dataset."""
        known = next((one.published.micro_f1 for one in self.suite.models if one.label == model), {})
        return known.get(dataset, known.get(self.suite.like(dataset)))

    @property
    def failed(self) -> pd.DataFrame:
        """The failed runs without a finished one, with their labels."""
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
            "rows": _records(self.summary),
            "ranks": {
                name: {
                    "models": dict(zip(one.models, one.ranks, strict=True)),
                    "datasets": len(one.datasets),
                    "friedman_p": one.p,
                    "critical_difference": one.critical_difference,
                }
                for name in self.protocols
                for one in [self.ranking(name)]
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
    append_rows(rows, out / TABLE)
    runs = read_tables([out / TABLE])
    write_table(runs, out / TABLE)
    pairs = pair_models(suite, outcomes)
    with atomic_write(out / PAIRS, overwrite=True) as temporary:
        pairs.to_csv(temporary, index=False, float_format="%.5g", lineterminator="\n")
    return _benchmark(suite, runs, pairs)


def open_benchmark(sources: Sequence[Path]) -> Benchmark:
    """The benchmark of a folder, of tables of runs, or, without any, of the packaged table."""
    suite, pairs = find_suite(_BENCHMARK), pd.DataFrame(columns=PAIR_COLUMNS)
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
