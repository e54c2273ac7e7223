"""Run a suite: generate data, prepare once for several runs, run the jobs that are not finished, and report.

DIR/suite.json        the content of the suite
DIR/data/NAME         generated datasets
DIR/runs/NAME         one folder per run (:mod:`subgnn.lab.suites.job`), named by content
DIR/results.csv       a line for each finished or failed run, added as it ends (:mod:`subgnn.lab.suites.report`)
DIR/paired.csv        models compared subgraph by subgraph (:mod:`subgnn.lab.suites.comparison`)
DIR/report.html       the page (:mod:`subgnn.lab.suites.page`)
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from subgnn.config.settings import recipe_key
from subgnn.data.dataset import Dataset
from subgnn.data.formats import read_dataset
from subgnn.data.formats.folder import write_folder
from subgnn.data.synthetic import find_recipe, generate, read_settings
from subgnn.embeddings.pretrain import ALGORITHM as PRETRAIN_ALGORITHM
from subgnn.embeddings.sources import PRETRAINED
from subgnn.errors import DataError, UserError, choices
from subgnn.lab.suites.job import FAILURE, OUTCOME, drop_weights, run_job, share_job
from subgnn.lab.suites.page import benchmark_page
from subgnn.lab.suites.report import PAGE, REPLACE, RUNS, SUITE, append_rows, known_seconds, read_folder, table_rows
from subgnn.lab.suites.spec import DatasetSpec, ModelSpec, Suite, with_split
from subgnn.models.interface import ChannelModel
from subgnn.models.recipes import parse_recipe, portfolio
from subgnn.models.registry import find_model, trainable_model_of
from subgnn.parallel.engine import Engine, Failure, LocalEngine
from subgnn.parallel.locks import LOCK, locked_folder, names_in
from subgnn.parallel.progress import OnProgress, ignore
from subgnn.prepare.measure import ALGORITHM_VERSION as PREPARE_ALGORITHM
from subgnn.render import write_page
from subgnn.storage.cache import cache_limit
from subgnn.storage.files import json_digest, read_json, write_json
from subgnn.task import task_of

TRAINING_ALGORITHM = 3
"""Increased when the same settings and seed train another model than before."""
PORTFOLIO_ALGORITHM = 1
"""Increased when the same portfolio makes another choice than before."""
_ALGORITHMS = {"prepare": PREPARE_ALGORITHM, "pretrain": PRETRAIN_ALGORITHM, "training": TRAINING_ALGORITHM}
DATA = "data"
_TEMPORARY = (LOCK, f".{SUITE}.")


@dataclass(frozen=True, slots=True)
class Request:
    """Options of all runs of a suite; ``split`` is that of all datasets, by default as the suite says."""

    seeds: int
    overrides: tuple[str, ...] = ()
    split: str = ""
    device: str = "auto"
    cache: bool = True
    id_base: int | None = None
    command: str = ""


def run_suite(
    suite: Suite,
    out: Path,
    *,
    data: Mapping[str, Path] | None = None,
    models: Sequence[str] = (),
    datasets: Sequence[str] = (),
    request: Request | None = None,
    engine: Engine | None = None,
    on_progress: OnProgress = ignore,
    plan: bool = False,
    job_seconds: float = math.inf,
) -> dict[str, Any]:
    """Run a suite, or a part of it; finished runs are skipped. Returns the report as plain values.

    Args:
        data: folders of datasets by their names in the suite; generated ones can be replaced as well.
        models, datasets: labels and names to run; all by default.
        plan: run only the first seed of each model and dataset whose time is not known, and return ``plan``, the costs.
        job_seconds: a run that takes longer is killed, and counts as failed.
    """
    request, engine = request or Request(suite.protocol.seeds), engine or LocalEngine()
    labels = [model.label for model in suite.models]
    wanted = [suite.models[labels.index(name)] for name in _select(models, labels, "--models")]
    places = _locate(suite, data or {}, _select(datasets, [d.name for d in suite.datasets], "--datasets"), out)
    for spec, _ in places:  # refuses unknown recipes and settings before any work
        for model in wanted:
            suite.recipe(model, spec.name, request.overrides)
    _check_folder(suite, out)
    with locked_folder(out, what="suite"):
        _check_folder(suite, out)
        write_json(_content(suite), out / SUITE)
        jobs = []
        for spec, source in places:
            if not source.exists():
                write_folder(generate(spec.generate, seed=spec.instance, **spec.options), source)
            dataset = read_dataset(source, id_base=request.id_base)
            if source == out / DATA / spec.name:
                recipe, card = find_recipe(spec.generate), dataset.card
                asked = recipe.version, spec.instance, asdict(read_settings(recipe, spec.options))
                if (card.get("version", 1), card.get("seed"), card.get("settings")) != asked:
                    hint = "remove it, so that the suite generates it again, or choose a different --out"
                    what = "this was generated by a different version, or with a different seed or options"
                    raise DataError(what, where=str(source), hint=hint)
            jobs += plan_jobs(suite, spec, source.resolve(), dataset, models=wanted, request=request)
        for job in jobs:
            job["out"] = str(out / RUNS / job["folder"])
        pending = [job for job in jobs if not _finished(job)]
        known = known_seconds(out)
        if plan:
            probes = {name: job for job in reversed(pending) for name in _names(suite, job) if name not in known}
            selected = list({job["key"]: job for job in probes.values()}.values())
        else:
            selected = sorted(pending, key=turn)
        _share(selected, engine, on_progress)
        for done, (job, run) in enumerate(engine.map(run_job, selected, seconds=job_seconds), 1):
            if isinstance(run, Failure):
                kept = {name: job[name] for name in ("key", "dataset", "seed", "models", "set", "split")}
                run = {**kept, "message": run.message, "details": run.details}
                write_json(run, Path(job["out"]) / FAILURE)
            on_progress("runs", done, len(selected))
            append_rows(table_rows(suite, run), out)
        if plan:
            left = [job for job in pending if not (Path(job["out"]) / OUTCOME).is_file()]
            return {"plan": cost_plan(suite, left, known_seconds(out), job_seconds)}
        return write_report(out)


def write_report(out: Path) -> dict[str, Any]:
    """Write table, pairs and page of a suite's folder; returns the report as plain values."""
    benchmark = read_folder(out)
    write_page(benchmark_page(benchmark), out / PAGE)
    return benchmark.to_json()


def plan_jobs(
    suite: Suite, spec: DatasetSpec, source: Path, dataset: Dataset, *, models: Sequence[ModelSpec], request: Request
) -> list[dict[str, Any]]:
    """The jobs of one dataset at a path, for :func:`~subgnn.lab.suites.job.run_job`, seed by seed.

    A run is identified by its key, the SHA-256 of its inputs: graph, subgraphs with labels and split, seed, settings
    after all overrides, and versions of algorithms. So models with the same content share a job, a finished run is
    found again under any name, and folders of runs can be copied from one machine to another.
    """
    name, split, graph = spec.name, request.split or spec.split or suite.protocol.split, dataset.graph.undirected()
    if task_of(dataset.subgraphs.task).real:
        raise DataError("its labels are real numbers", where=name, hint="suites compare classifiers: give classes")
    graph = replace(graph, known_hash=graph.content_hash)
    drawn = split in ("random", "folds")
    recipes = [(model, suite.recipe(model, name, request.overrides)) for model in models]
    on_gpu = request.device == "cuda" or (request.device == "auto" and torch.cuda.is_available())
    jobs: dict[str, dict[str, Any]] = {}
    for seed in range(request.seeds):
        subgraphs_hash = with_split(dataset, split, seed).subgraphs.content_hash
        for model, recipe in recipes:
            if not drawn and model.seeds and seed >= model.seeds:
                continue
            settings = recipe_key(recipe)
            if recipe.auto.candidates:  # their settings instead of the names of their recipes
                candidates = {label: recipe_key(one) for label, one in portfolio(recipe, ()).items()}
                own = {"only": [], "candidates": candidates, "algorithm": PORTFOLIO_ALGORITHM}
                settings["auto"] = {**settings["auto"], **own}
            same = {"graph": graph.content_hash, "split": split, "settings": settings, "algorithms": _ALGORITHMS}
            key = json_digest(same | {"subgraphs": subgraphs_hash, "seed": seed})
            if key in jobs:
                jobs[key]["models"].append(model.label)
                continue
            jobs[key] = {
                "key": key,
                "folder": f"{_plain(name)}_{_plain(recipe.name)}_{seed}_{key[:12]}",
                "suite": suite.name,
                "dataset": name,
                "graph": graph.content_hash,
                "source": str(source),
                "split": split,
                "seed": seed,
                "models": [model.label],
                "set": list(request.overrides),
                # Without the parts that are not in the key: an interrupted run is resumed although a note has changed.
                "recipe": replace(recipe, note="", published={}).plain(),
                # A network is trained step by step; a portfolio decides by itself what runs on a GPU.
                "on_gpu": on_gpu and not (recipe.is_portfolio or trainable_model_of(recipe).is_fitted_in_one_go),
                **{option: getattr(request, option) for option in ("device", "cache", "id_base", "command")},
            }
    return list(jobs.values())


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name)[:40]


def _names(suite: Suite, job: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Dataset, model and protocol of a job, as its lines in the table have them."""
    rows = table_rows(suite, {**job, "message": ""})
    return [(row["dataset"], row["variant"] or row["model"], row["protocol"]) for row in rows]


def cost_plan(
    suite: Suite, jobs: Sequence[Mapping[str, Any]], known: Mapping[tuple[str, str, str], float], longest: float
) -> list[dict[str, Any]]:
    """Number and seconds of the runs left, by dataset and model; ``at_least`` the limit where the probe was killed."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for job in jobs:
        name = _names(suite, job)[0]
        each = known.get(name)
        limit = {"seconds": longest if each is None and longest < math.inf else each, "at_least": each is None}
        about = dict(zip(("dataset", "model", "protocol"), name, strict=True)) | {"on_gpu": job["on_gpu"], "runs": 0}
        found.setdefault(name, about | limit)["runs"] += 1
    return list(found.values())


def turn(job: Mapping[str, Any]) -> tuple[int, int]:
    """The order of jobs: seed by seed, and large portfolios first, so that workers end at about the same time."""
    auto = job["recipe"]["auto"]
    return job["seed"], -len(auto["only"] or auto["candidates"])


def _share(jobs: Sequence[dict[str, Any]], engine: Engine, on_progress: OnProgress) -> None:
    """Pretrain embeddings once for all runs that use them, then prepare subgraphs once that several runs need.

    A portfolio does both by itself. A failure here occurs again, and is reported, in the runs themselves.
    """
    if cache_limit() == 0:
        return
    pretrain: dict[str, dict[str, Any]] = {}
    prepare: dict[str, list[dict[str, Any]]] = {}
    for job in (job for job in jobs if job["cache"]):
        recipe = parse_recipe(job["recipe"], job["folder"])
        model, plain = find_model(recipe.method), job["recipe"]
        if model.uses_embeddings(recipe) and recipe.embeddings.source in PRETRAINED:
            # By the graph, which two datasets may share.
            parts = [job["graph"], recipe.embeddings.source, recipe.embeddings.dim, plain["pretrain"]]
            pretrain.setdefault(json_digest({"of": parts}), {**job, "share": "pretrain"})
        if isinstance(model, ChannelModel):
            settings = [plain["channels"], plain["prepare"], recipe.model.layers]
            prepare.setdefault(json_digest({"of": [job["source"], job["seed"], settings]}), []).append(job)
    several = [{**same[0], "share": "prepare", "on_gpu": False} for same in prepare.values() if len(same) > 1]
    for what, shared in (("pretraining", list(pretrain.values())), ("preparing", several)):
        for done, _ in enumerate(engine.map(share_job, shared), 1):
            on_progress(what, done, len(shared))


def _finished(job: Mapping[str, Any]) -> bool:
    """Whether a job's run is finished; if so, give it the job's models and dataset, and remove leftovers of a kill."""
    folder = Path(job["out"])
    if not (folder / OUTCOME).is_file():
        return False
    outcome = read_json(folder / OUTCOME, REPLACE)
    renamed = {**outcome, "models": [*dict.fromkeys([*outcome["models"], *job["models"]])], "dataset": job["dataset"]}
    if renamed != outcome:
        write_json(renamed, folder / OUTCOME)
    drop_weights(folder)
    return True


def _select(names: Iterable[str], known: Sequence[str], where: str) -> list[str]:
    """The known names among ``names``, or all if there are none; - and _ are equal."""
    given = {name.replace("_", "-"): name for name in names}
    for plain in given.keys() - {name.replace("_", "-") for name in known}:
        raise UserError(f"the suite does not have '{given[plain]}'", where=where, hint=choices(given[plain], known))
    return [name for name in known if not given or name.replace("_", "-") in given]


def _locate(suite: Suite, data: Mapping[str, Path], wanted: Iterable[str], out: Path) -> list[tuple[DatasetSpec, Path]]:
    """The path of each dataset, also of those to be generated; datasets that are neither are left out."""
    names = [dataset.name for dataset in suite.datasets]
    _select(data, names, "--data")
    given = {name.replace("_", "-"): path for name, path in data.items()}
    chosen, found = set(wanted), []
    for dataset in suite.datasets:
        path = given.get(dataset.name.replace("_", "-"), given.get(dataset.folder_of.replace("_", "-")))
        if path is not None and not path.exists():
            raise DataError("no such folder", where=str(path), hint=f"give the dataset with --data {dataset.name}=DIR")
        if dataset.name in chosen and path is not None:
            found.append((dataset, path))
        elif dataset.name in chosen and dataset.generate:
            found.append((dataset, out / DATA / dataset.name))
    if not found:
        hint = f"give at least one folder, such as --data {names[0]}=DIR; the suite knows {', '.join(names)}"
        raise UserError("no dataset is given", where=f"benchmark run {suite.name}", hint=hint)
    return found


def _check_folder(suite: Suite, out: Path) -> None:
    """Check that the folder is new, or holds the same suite; datasets may have been added since."""
    names = names_in(out)
    if names is not None and SUITE in names:
        before, now = read_json(out / SUITE, "choose a different --out"), _content(suite)["datasets"]
        known = {dataset["name"]: dataset for dataset in before["datasets"]}
        if before["name"] != suite.name or any(known.get(one["name"], one) != one for one in now):
            what = f"it holds a different suite, '{before['name']}'"
            raise DataError(what, where=str(out), hint="choose a different --out")
    elif names is None or not all(name.startswith(_TEMPORARY) for name in names):
        raise DataError("exists already", where=str(out), hint="choose a different --out")


def _content(suite: Suite) -> dict[str, Any]:
    return dict(json.loads(json.dumps({k: v for k, v in asdict(suite).items() if k != "folder"})))
