"""``subgnn recipes``, ``prepare``, ``pretrain`` and ``tune``: choose a recipe, and what its training starts from."""

import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from subgnn.api.options import with_options
from subgnn.api.progress import progress_bar
from subgnn.cli.options import DatasetPath, ForceFlag, IdBase, JsonFlag, MemoryLimit, RecipeName, Settings
from subgnn.cli.output import print_json, print_line, print_next, print_table
from subgnn.config.settings import Recipe
from subgnn.errors import DataError, UserError, extra_package
from subgnn.training.options import CacheFlag, DeviceName


def list_recipes(
    name: Annotated[str | None, Argument(metavar="NAME", help="Print a recipe as TOML: a name, file or run.")] = None,
    settings: Settings = None,
    json: JsonFlag = False,
) -> None:
    """List the packaged recipes: what each is for, what it needs, and what it costs. Or print one as TOML.

    Examples:
    $ subgnn recipes bag
    name = "bag"
    ...

    $ subgnn recipes subgnn --set channels=P,N > my.toml
    """
    from subgnn.config.recipes import recipe_groups
    from subgnn.models.recipes import find_recipe, recipe_toml

    if name is not None:
        recipe = find_recipe(name, settings or ())
        print_json(recipe.plain())
        print_line(recipe_toml(recipe).rstrip())
        return
    if settings:
        raise UserError("no recipe is named", where="--set", hint="write subgnn recipes NAME --set ...")
    groups = {title: [_describe(find_recipe(name)) for name in names] for title, names in recipe_groups().items()}
    print_json({"recipes": [one for found in groups.values() for one in found]})
    for title, found in groups.items():
        rows = [
            (one["name"], one["purpose"], "; needs ".join(filter(None, (one["cost"], ", ".join(one["needs"])))))
            for one in found
        ]
        print_table(title, ("name", "purpose", "cost and needs"), rows)
    print_line("A solved recipe usually takes seconds, a trained one minutes. Without --recipe, train uses auto.")
    print_next("train", "DIR", "--recipe", "NAME", "--out", "RUN")


def _describe(recipe: Recipe) -> dict[str, Any]:
    """What a recipe is for, what it needs beside labelled subgraphs, and the work of a run."""
    from subgnn.embeddings.sources import PRETRAINED
    from subgnn.models.registry import model_of, trainable_model_of

    model, source = model_of(recipe), recipe.embeddings.source
    needs = ["edges"] if model.needs_edges else []
    needs += [f"extra {model.extra}"] if model.extra else []
    needs += [f"{source} embeddings"] if model.uses_embeddings(recipe) and source in PRETRAINED else []
    needs += [] if model.predicts_new_subgraphs else ["known subgraphs"]
    if recipe.is_portfolio:
        cost = f"up to {recipe.auto.time / 60:g} minutes"
    else:
        trainable = trainable_model_of(recipe)
        fits, epochs = trainable.num_fits(recipe), recipe.training.epochs
        cost = f"trained, {f'{fits} x ' if fits > 1 else ''}{epochs} epochs"
        if trainable.is_fitted_in_one_go:
            cost = f"solved, {fits} {'fit' if fits == 1 else 'fits'}"
    note = " ".join(recipe.note.split())
    purpose = note.partition(". ")[0].removesuffix(".")
    about = {"name": recipe.name, "purpose": purpose, "note": note, "method": recipe.method}
    return about | {"needs": needs, "cost": cost, "published": recipe.published}


def prepare_dataset(
    path: DatasetPath,
    recipe: RecipeName = "subgnn",
    seed: Annotated[int, Option(help="Seed for anchors and walks.")] = 0,
    settings: Settings = None,
    cache: CacheFlag = True,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Compute components, anchors and similarities, and store them in the cache, where train finds them.

    Example:
    $ subgnn prepare genes --recipe subgnn
    genes: subgnn, seed 0
    ...
    next: subgnn train genes --recipe subgnn --seed 0 --out runs/subgnn_0
    """
    from subgnn.config.recipes import check_recipe_early
    from subgnn.data.formats import read_dataset

    check_recipe_early(recipe, settings or ())
    dataset = read_dataset(path, id_base=id_base)

    from subgnn.models.recipes import find_recipe, unused_data, unused_line
    from subgnn.prepare.measure import prepare_cached

    chosen = find_recipe(recipe, settings or ())
    begin, graph = time.perf_counter(), dataset.graph.undirected()
    with progress_bar() as bar:
        cached = prepare_cached(chosen, graph, dataset.subgraphs.nodes, seed=seed, cache=cache, on_progress=bar.prepare)
    found: dict[str, Any] = {
        "dataset": dataset.name,
        "recipe": chosen.name,
        "seed": seed,
        "num_subgraphs": len(dataset.subgraphs),
        "num_components": len(cached.prepared.components.nodes),
        "num_touched_nodes": len(cached.prepared.touched()),
        "found": cached.found,
        "file": None if cached.path is None else str(cached.path),
        "bytes": 0 if cached.path is None else cached.path.stat().st_size,
        "unused": unused_data(chosen, dataset.graph, dataset.subgraphs),
        "layers": chosen.model.layers,
        "anchors": {channel.name: channel.num_anchors for channel in chosen.channels},
        "seconds": time.perf_counter() - begin,
    }
    print_json(found)
    counts = {name: found[f"num_{name}"] for name in ("subgraphs", "components", "touched_nodes")}
    counts |= {"layers": found["layers"]} | {f"anchors, {name}": count for name, count in found["anchors"].items()}
    rows = [(name.replace("touched_", "touched "), f"{count:,}") for name, count in counts.items()]
    rows += [("seconds", f"{found['seconds']:.2f}")]
    if cached.path is None:
        rows += [("file", "not cached")]
    else:
        rows += [("size", f"{found['bytes'] / 1e6:,.1f} MB"), ("found in the cache", "yes" if cached.found else "no")]
        rows += [("file", str(cached.path))]
    print_table(f"{dataset.name}: {chosen.name}, seed {seed}", ("what", "value"), rows)
    if line := unused_line(chosen, dataset.graph, dataset.subgraphs):
        print_line(line)
    overrides = [word for setting in settings or () for word in ("--set", setting)]
    print_next("train", path, "--recipe", recipe, "--seed", seed, *overrides, "--out", f"runs/{chosen.name}_{seed}")


def pretrain_nodes(
    path: DatasetPath,
    out: Annotated[Path, Option(metavar="EMB", help="The .safetensors file to write.")],
    method: Annotated[Literal["gin", "graphsaint"], Option(help="Model that learns the embeddings.")] = "gin",
    dim: Annotated[int, Option(min=1, help="Numbers per node.")] = 64,
    settings: Annotated[
        list[str] | None, Option("--set", metavar="pretrain.KEY=VALUE", help="Override a setting; may be repeated.")
    ] = None,
    device: DeviceName = "auto",
    force: ForceFlag = False,
    id_base: IdBase = None,
    json: JsonFlag = False,
) -> None:
    """Learn node embeddings by link prediction, for recipes to start from.

    Example:
    $ subgnn pretrain genes --method gin --dim 16 --out vectors.safetensors
    vectors.safetensors: 48 vectors of 16 numbers, gin
    ...
    """
    from subgnn.data.formats import read_dataset
    from subgnn.models.recipes import parse_recipe
    from subgnn.parallel.locks import locked_file
    from subgnn.storage.files import refuse_existing

    for text in settings or ():
        if not text.strip().startswith("pretrain."):
            what = f"'{text}' is not a pretraining setting"
            raise UserError(what, where="--set", hint="accepted: pretrain.KEY=VALUE")
    chosen = parse_recipe({}, "--set", settings or ()).pretrain
    if out.suffix != ".safetensors":
        raise DataError(f"unknown kind of file '{out.suffix}'", where=str(out), hint="accepted: .safetensors")
    refuse_existing(out, overwrite=force)
    graph = read_dataset(path, id_base=id_base).graph

    from subgnn.data.graph import ATTRIBUTES
    from subgnn.embeddings.pretrain import pretrain
    from subgnn.embeddings.sources import write_vectors

    with locked_file(out, doing="pretraining into this file"), progress_bar(pretrain_epochs=chosen.epochs) as bar:
        plain = graph.undirected()
        vectors, about = pretrain(plain, method, dim=dim, settings=chosen, device=device, on_epoch=bar.pretrain)
        write_vectors(out, vectors, about, graph_hash=plain.content_hash, overwrite=force)
    unused = [ATTRIBUTES[name] for name in graph.attributes if name != "features"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    about = {name: value for name, value in about.items() if name != "settings"} | {"dim": dim}
    print_json(about | {"graph_hash": plain.content_hash, "peak_memory_mb": peak, "unused": unused, "out": str(out)})
    columns = {
        "val auroc": f"{about['val_auroc']:.3f}",
        "the same, ends by degree": f"{about['val_matched_auroc']:.3f}",
        "selected epoch": f"{about['selected_epoch']} of {about['epochs']}",
        "seconds": f"{about['seconds']:.0f}",
        "peak memory, MB": f"{peak:.0f}",
    }
    title = f"{out}: {graph.num_nodes:,} vectors of {dim} numbers, {method}"
    print_table(title, list(columns), [list(columns.values())])
    if unused:
        print_line(f"not used by pretraining: {'; '.join(unused)}")
    source, width = f"embeddings.source={out}", f"embeddings.dim={dim}"
    print_next("train", path, "--set", source, "--set", width, "--out", "RUN")


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Options of the search, as :func:`subgnn.lab.tuning.tune.tune` takes them."""

    trials: Annotated[int, Option(min=1, help="Trials in the study, over all calls.")] = 50
    storage: Annotated[str | None, Option(metavar="URL", help="Database or SQLite file; default OUT/study.db.")] = None
    study: Annotated[str | None, Option(metavar="NAME", help="The study; default DATASET/RECIPE/SPACE.")] = None
    folds: Annotated[int, Option(min=2, metavar="K", help="Score on K folds of train and val.")] = 5
    timeout: Annotated[float | None, Option(min=0, metavar="SECONDS", help="Start no trial after this time.")] = None
    seed: Annotated[int, Option(min=0, help="Seed of the search.")] = 0
    device: DeviceName = "auto"
    cache: CacheFlag = True


@with_options(TuneOptions)
def tune_recipe(
    *,
    path: DatasetPath,
    out: Annotated[Path, Option(metavar="DIR", help="The folder for results.")] = Path("tuned"),
    recipe: RecipeName = "subgnn",
    space: Annotated[str | None, Option(help="Search space: a name or .toml file; default the paper's.")] = None,
    settings: Settings = None,
    id_base: IdBase = None,
    memory: MemoryLimit = None,
    json: JsonFlag = False,
    options: TuneOptions,
) -> None:
    """Search for better settings by cross-validation with Optuna; test subgraphs are never used.

    The same command continues the study. Commands with the same --storage, here or on other machines, share one.

    Example:
    $ subgnn tune genes --recipe subgnn --trials 50 --out tuned
    genes/subgnn/paper: 50 complete; tuned/trials.tsv lists them
    ...
    best out-of-fold micro-F1 ... (trial ...); no test subgraph was seen
    next: subgnn train genes --recipe tuned/recipe.toml --out runs/subgnn_tuned
    """
    with extra_package("optuna", extra="tune", feature="tune"):
        import optuna  # noqa: F401
    from subgnn.data.formats import read_dataset
    from subgnn.lab.tuning.tune import find_space, tune
    from subgnn.models.recipes import find_recipe

    chosen = find_recipe(recipe, settings or ())
    wanted = None if space is None else find_space(space)
    dataset = read_dataset(path, id_base=id_base)
    with progress_bar() as bar:
        found = tune(dataset, chosen, out, space=wanted, on_progress=bar.prepare, **asdict(options))
    print_json(found)
    best = found["best"]
    counts = ", ".join(f"{count} {state}" for state, count in found["trials"].items())
    print_line(f"{found['study']}: {counts}; {found['files']['trials']} lists them")
    for name, value in best["parameters"].items():
        print_line(f"  {name} = {f'{value:.4g}' if isinstance(value, float) else value}")
    print_line(f"best {found['score_name']} {best['score']:.3f} (trial {best['trial']}); no test subgraph was seen")
    print_next("train", path, "--recipe", found["files"]["recipe"], "--out", f"runs/{found['recipe']}_tuned")
