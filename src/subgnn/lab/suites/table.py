"""The table of a benchmark's runs: one line for each, in CSV or Parquet, from which the benchmark's page is made.

Tables of several machines, or of other laboratories, are read together. A table needs the columns ``dataset``,
``model`` and ``micro_f1``; the others may be missing.
"""

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from subgnn.errors import DataError
from subgnn.lab.suites.plan import FOLDS
from subgnn.lab.suites.spec import Suite
from subgnn.storage.files import atomic_write

TABLE, COMPRESSED = "results.csv", "results.csv.gz"
PACKAGED = Path(__file__).parent / COMPRESSED
"""Our own runs of ``subgraphbench``."""
KEY = ["dataset", "model", "variant", "protocol", "seed", "fold", "set"]
METRICS = ["micro_f1", "macro_f1", "auroc", "auprc", "val_micro_f1", "calibration_error", "majority"]
COST = ["seconds", "memory_mb", "gpu_memory_mb"]
COLUMNS = [*KEY, "task", *METRICS, "tested", *COST, "device", "commit", "failure"]
_MOST = 16 * 2**20  # bytes of a table


def table_rows(suite: Suite, run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lines of a finished or failed run: one for each model of the suite that it stands for.

    A ``+`` after the commit says that the source had changes that were not committed.
    """
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
        about |= {name: run["test"].get(name) for name in ("micro_f1", "macro_f1", "auroc", "auprc")}
        about |= {name: run.get(name) for name in ("task", "calibration_error", "majority", "tested", "device")}
        about |= {
            "val_micro_f1": run["val"].get("micro_f1"),
            "commit": run["commit"][:12] + ("+" if " " in run["commit"] else ""),
            "seconds": run["total_seconds"],
            "memory_mb": run["peak_memory_mb"],
            "gpu_memory_mb": run["peak_gpu_memory_mb"],
        }
    about["set"] = " ".join(run["set"])
    shared = [(label, variants.get(label, "")) for label in run["models"]]
    return [{**about, "model": of or label, "variant": label if of else ""} for label, of in shared]


def append_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Add lines to a CSV file at once, so that a kill loses none."""
    new, text = not path.exists(), io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if new:
        writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{value:.5g}" if isinstance(value, float) else value for name, value in row.items()})
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())


def read_tables(paths: Sequence[Path]) -> pd.DataFrame:
    """The runs of several tables (CSV, also gzipped, or Parquet) or folders; of a run that occurs twice, the later one.

    A failure does not replace a finished run.
    """
    whole = pd.concat([_read(path / TABLE if path.is_dir() else path) for path in paths], ignore_index=True)
    whole["_done"] = whole["failure"].eq("")
    whole = whole.sort_values("_done", kind="stable").drop_duplicates(KEY, keep="last").sort_index()
    return whole.drop(columns="_done").reset_index(drop=True)


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
    """One row for each dataset, protocol and model: means over its runs, spread and 95 % interval of micro-F1.

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
        score, n = float(mine["micro_f1"].mean()), len(mine)
        folds = protocol == "folds"
        tested = float(mine["tested"].sum() if folds else mine["tested"].mean())
        spread = float(mine["micro_f1"].std(ddof=1)) if n > 1 else 0.0
        if folds and tested:
            score = float((mine["micro_f1"] * mine["tested"]).sum() / tested)
        share = (score * tested + 2) / (tested + 4)
        variance = (share * (1 - share) / (tested + 4) if tested > 0 else np.nan) + (0.0 if folds else spread**2 / n)
        found.append(
            {
                "dataset": dataset,
                "protocol": protocol,
                "model": label,
                "variant": mine["variant"].iloc[0],
                "n": n,
                "score": score,
                "spread": spread,
                "error": 1.96 * float(np.sqrt(variance)),
                "tested": tested,
                **{name: float(mine[name].mean()) for name in [*METRICS[1:], *COST] if mine[name].notna().any()},
            }
        )
    about = ["dataset", "protocol", "model", "variant", "n", "score", "spread", "error", "tested"]
    return pd.DataFrame(found, columns=[*about, *METRICS[1:], *COST])


def with_labels(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ``label``, by which a row is shown: the model, and its changed settings where it has several."""
    several = table.groupby("model")["set"].transform("nunique") > 1 if len(table) else table["model"].eq("")
    changed = table["model"] + " · " + table["set"]
    return table.assign(label=table["model"].where(~several | table["set"].eq(""), changed))
