"""The command ``subgnn``: its commands, error messages and exit codes.

Exit codes: 0 done; 2 an error of the user, one line on stderr; 1 a bug; 130 interrupted (143 by SIGTERM).
"""

import inspect
import os
import platform
import sys
import traceback
from collections.abc import Callable
from functools import cache
from importlib import metadata
from typing import Annotated, Any

import typer
import typer.core

from subgnn.cli import answers, runs
from subgnn.cli.benchmark import benchmark
from subgnn.cli.data import data
from subgnn.cli.options import JsonFlag
from subgnn.cli.output import continuing_command, messages_as_lines, print_error, print_json, print_line, print_table
from subgnn.cli.prepare import list_recipes, prepare_dataset, pretrain_nodes, tune_recipe
from subgnn.cli.train import train_run, update_trained_run
from subgnn.config.plugins import allow_plugin, is_plugin
from subgnn.errors import UserError, excerpt
from subgnn.parallel.interrupts import exit_code
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
    print_json(found)
    rows = [
        *((name, found[name]) for name in ("subgnn", "python", "platform")),
        *installed.items(),
        ("devices", ", ".join(devices)),
        ("threads", f"{numba.get_num_threads()} of {cpus} processors"),
        ("cache", found["cache"]),
        ("cached", f"{len(entries):,} files, {size / 1e9:.2f} of {limit / 1e9:g} GB"),
    ]
    print_table("subgnn info", ("what", "value"), rows)


_VERBS: dict[str, dict[str, tuple[Callable[..., Any] | typer.Typer, str]]] = {
    "Train and use a model": {
        "train": (train_run, "Find and train the best model for your labelled subgraphs."),
        "predict": (answers.predict_subgraphs, "Predict the labels of new subgraphs."),
        "explain": (answers.explain_subgraphs, "Show why: what each node, component and channel contributes."),
        "draw": (answers.draw_subgraphs, "Draw a subgraph in its surroundings."),
        "complete": (answers.complete_subgraphs, "Suggest nodes that are missing from a subgraph."),
        "search": (answers.search_subgraphs, "Find the known subgraphs that are most like a new one."),
        "embed": (answers.embed_subgraphs, "Turn subgraphs into vectors."),
        "evaluate": (runs.evaluate_run, "Score a trained model on a split of its data."),
        "update": (update_trained_run, "Fit a trained model again to a graph that has grown."),
        "verify": (runs.verify_records, "Check that recorded answers still come out the same."),
        "report": (runs.report_run, "Write a page on a trained model: scores, mistakes, drawings."),
        "runs": (runs.list_runs, "List and compare trained models."),
        "serve": (runs.serve_runs, "Answer over HTTP, with a web page to explore."),
        "export": (runs.export_run_file, "Pack a trained model into one file."),
    },
    "Data": {
        "data": (data, "Convert, check, describe and split datasets, or get those of the paper."),
        "info": (info, "Show versions, devices, threads and the cache folder."),
    },
    "Laboratory: choose a model yourself, reproduce papers": {
        "recipes": (list_recipes, "List the models that can be trained by name."),
        "tune": (tune_recipe, "Search for better settings of a model."),
        "benchmark": (benchmark, "Compare models on several datasets, as the paper's tables do."),
        "pretrain": (pretrain_nodes, "Learn vectors of nodes for models to start from."),
        "prepare": (prepare_dataset, "Compute what training needs, ahead of it."),
    },
}


class _InOrder(typer.core.TyperGroup):
    """Commands in the order of use; typer lists groups of commands last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for verbs in _VERBS.values() for name in verbs]


app = typer.Typer(
    name="subgnn",
    cls=_InOrder,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn from labelled subgraphs of one large graph, and predict the labels of new ones.\n\n"
    "To begin: subgnn train edges.csv members.csv --out run",
)
for _panel, _verbs in _VERBS.items():
    for _name, (_verb, _line) in _verbs.items():
        if isinstance(_verb, typer.Typer):
            app.add_typer(_verb, name=_name, short_help=_line, rich_help_panel=_panel)
        else:
            app.command(_name, short_help=_line, rich_help_panel=_panel)(_verb)

for _typer in (app, data, benchmark):
    for _command in _typer.registered_commands:
        # Sentences break where the terminal does, and examples where they are written.
        _paragraphs = inspect.cleandoc(getattr(_command.callback, "__doc__", None) or "").split("\n\n")
        _command.help = "\n\n".join(one if "$ " in one else one.replace("\n", " ") for one in _paragraphs)

_INTERRUPTED = 130  # the code that typer turns a KeyboardInterrupt into


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"subgnn {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show an error's traceback; accepted after any command. Or set SUBGNN_DEBUG=1."),
    ] = False,
    plugin: Annotated[
        str,
        typer.Option(
            "--plugin",
            metavar="MODULE",
            help="Import this module if a run uses a model or channel from it; accepted after any command, repeatable. "
            "Or set SUBGNN_PLUGINS.",
        ),
    ] = "",
) -> None:
    """Classify subgraphs of a large graph."""


@cache
def _group() -> Callable[..., Any]:
    """All commands with their parameters; typer would read them from the functions again at every call."""
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given or bool(os.environ.get("SUBGNN_DEBUG"))
    words = [word for word in given if word != "--debug"]
    try:
        with messages_as_lines():
            words = _allow_plugins(words)
            code = _group()(args=words, prog_name="subgnn", standalone_mode=False, obj=words)
        sys.stdout.flush()
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        command = continuing_command(words)
        print_error(f"interrupted; continue with: {command}" if command else "interrupted")
        return exit_code()
    except (BrokenPipeError, SystemExit):
        # The process that reads our output has ended, which typer turns into an exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        of_torch = ("can't allocate memory", "Storage size calculation overflowed")
        kind = type(error).__name__
        if isinstance(error, UserError):
            print_error(str(error))
        elif isinstance(error, OSError) and error.filename is not None:
            print_error(f"{error.filename}: {error.strerror or error}; check the path and its permissions")
        elif kind in ("MemoryError", "OutOfMemoryError") or any(text in str(error) for text in of_torch):
            hint = "lower the sizes in the recipe (anchors, layers, embeddings.dim, walks), or use more memory"
            print_error(f"subgnn: out of memory ({str(error).splitlines()[0] if str(error) else 'no details'}); {hint}")
        elif (usage := getattr(error, "format_message", None)) is not None:
            said = usage().replace("Value error, ", "").rstrip(".")
            if kind != "NoArgsIsHelpError":  # which has printed the help
                context = getattr(error, "ctx", None)
                command = context.command_path if context is not None else "subgnn"
                print_error(f"{command}: {said}; see {command} --help")
        else:
            hint = "this is a bug in subgnn: run again with --debug and report it"
            print_error(f"subgnn failed: {kind}: {error}; {hint}")
            return 1
        return 2


def _allow_plugins(words: list[str]) -> list[str]:
    """Allow the modules after ``--plugin``, wherever it is, and return the other words."""
    others, given = [], iter(words)
    for word in given:
        option, sign, module = word.partition("=")
        if option != "--plugin":
            others.append(word)
            continue
        module = module if sign else next(given, "")
        if not is_plugin(f"{module.partition(':')[0]}:NAME"):
            hint = "accepted: the name of a Python module, such as --plugin my_package.my_model"
            raise UserError(excerpt(module), where="--plugin", hint=hint)
        allow_plugin(module)
    return others
