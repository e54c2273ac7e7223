"""A tiny suite: cliques, three models, two seeds."""

from pathlib import Path

from subgnn.data.formats.folder import write_folder
from subgnn.lab.suites.run import Request, run_suite
from subgnn.lab.suites.spec import Suite, parse_suite
from tests.training.examples import dataset

SMALL = ("prepare.patch_length=5", "prepare.walks=2", "prepare.walk_length=4", "embeddings.dim=4", "training.epochs=2")
MODELS = [
    {
        "label": "SubGNN",
        "recipe": "structure",
        "set": ["channels.structure=3"],
        "published": {"source": "Nobody 1999, Table 0", "micro_f1": {"cliques": 0.75}, "auroc": {"cliques": 0.5}},
    },
    {"label": "bag", "recipe": "bag"},
    {"label": "avg", "recipe": "avg", "published": {"micro_f1": {"elsewhere": 0.1}}},
]


def tiny(**changes: object) -> Suite:
    content = {
        "name": "tiny",
        "title": "A tiny suite",
        "protocol": {"seeds": 2},
        "datasets": [{"name": "cliques"}],
        "models": MODELS,
    }
    return parse_suite(content | changes, "here")


def folder(parent: Path, task: str = "multi-class") -> Path:
    """The cliques, on the disk."""
    write_folder(dataset(task), parent / "cliques")
    return parent / "cliques"


def run(suite: Suite, data: Path, out: Path, *, seeds: int = 2, overrides: tuple[str, ...] = SMALL, **options):
    request = Request(seeds=seeds, overrides=overrides, device="cpu", command="subgnn benchmark run tiny")
    return run_suite(suite, out, data={"cliques": data}, request=request, **options)


def timeless(value):
    """A report without what differs from run to run: times and memory."""
    if isinstance(value, dict):
        gone = ("seconds", "memory_mb")
        return {key: timeless(item) for key, item in value.items() if key not in gone}
    return [timeless(item) for item in value] if isinstance(value, list) else value
