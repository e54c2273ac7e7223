"""``subgnn info`` and ``subgnn recipes``: what is installed, and what can be trained."""

import os
import platform
from importlib import metadata
from typing import Annotated, Any

from typer import Argument

from subgnn.cli.options import JsonFlag, Settings
from subgnn.cli.output import print_json, print_line, print_next, print_table
from subgnn.config.settings import Recipe
from subgnn.errors import UserError
from subgnn.versions import __version__

_PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "torch", "torch_geometric", "lightning", "scikit-learn", "networkx")


def info(json: JsonFlag = False) -> None:
    """Show versions, devices, threads and the cache folder.

    Example:
    $ subgnn info
    subgnn info
    ...
    """
    import numba
    import torch

    from subgnn.storage.cache import cache_entries, cache_folder, cache_limit

    devices = ["cpu", *(f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count()))]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    entries, limit = cache_entries(), cache_limit()
    size = sum(entry.size for entry in entries)
    installed = {
        name: next((one.version for one in metadata.distributions(name=name)), "not installed") for name in _PACKAGES
    }
    found: dict[str, Any] = {
        "subgnn": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": installed,
        "devices": devices,
        "threads": {"cpus": cpus, "numba": numba.get_num_threads()},
        "cache": str(cache_folder()),
        "cache_content": {"entries": len(entries), "bytes": size, "limit_bytes": limit},
    }
    if json:
        print_json(found)
        return
    rows = [
        *((name, found[name]) for name in ("subgnn", "python", "platform")),
        *installed.items(),
        ("devices", ", ".join(devices)),
        ("threads", f"{numba.get_num_threads()} of {cpus} processors"),
        ("cache", found["cache"]),
        ("cached", f"{len(entries):,} files, {size / 1e9:.2f} of {limit / 1e9:g} GB"),
    ]
    print_table("subgnn info", ("what", "value"), rows)


def list_recipes(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="Print this recipe as TOML: a name, file or run.")
    ] = None,
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
    from subgnn.models.recipes import find_recipe

    if name is not None:
        from subgnn.reports.reproduce import recipe_toml

        recipe = find_recipe(name, settings or ())
        if json:
            print_json(recipe.plain())
        else:
            print_line(recipe_toml(recipe).rstrip())
        return
    if settings:
        raise UserError("no recipe is named", where="--set", hint="write subgnn recipes NAME --set ...")
    groups = {title: [_describe(find_recipe(name)) for name in names] for title, names in recipe_groups().items()}
    if json:
        print_json({"recipes": [one for found in groups.values() for one in found]})
        return
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
