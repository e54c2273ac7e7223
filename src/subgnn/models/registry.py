"""Registry of models: look one up, set it up from a recipe, open it from a checkpoint.

avg to gc are the paper's baselines (section 5, appendix D); topology to profiles are beyond it: a model that does
not beat them has learned nothing that needs it. wlks, s2n, glass and ssnp were published after the paper for the same
task (docs/models.md). unsupervised gives vectors without labels; auto is a portfolio of others.
"""

from collections import UserDict
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, cast

from subgnn.config.plugins import load_plugin
from subgnn.config.settings import PORTFOLIO, Recipe
from subgnn.data.graph import Graph
from subgnn.data.node_match import NodeMatch
from subgnn.embeddings.sources import Tables, vectors_hash
from subgnn.errors import DataError, UserError, choices, excerpt
from subgnn.models.interface import ChannelModel, FittedModel, LoadContext, Model, SetUp, TrainableModel, TrainingData
from subgnn.models.spec import BASELINE, Checkpoint, ModelSpec


class Models(UserDict[str, Any]):
    """Models by name, each made when it is first asked for: those that are fitted in one go do without PyTorch."""

    def __getitem__(self, name: str) -> Model:
        if isinstance(found := self.data[name], partial):
            self.data[name] = found = found()
        return cast(Model, found)


def _later(module: str, kind: str, *arguments: Any, **options: Any) -> partial[Model]:
    """A model of a class in a module of this package, not yet made."""
    return partial(lambda: getattr(import_module(f"subgnn.models.{module}"), kind)(*arguments, **options))


MODELS = Models(
    {
        "subgnn": _later("subgnn.fitted", "SubGNNModel"),
        "avg": _later("baselines.node_pooling", "AverageModel"),
        "mn-gin": _later("baselines.known_subgraphs", "MetaNodeModel", attention=False),
        "mn-gat": _later("baselines.known_subgraphs", "MetaNodeModel", attention=True),
        "s2v-n": _later("baselines.known_subgraphs", "Sub2VecModel", "n"),
        "s2v-s": _later("baselines.known_subgraphs", "Sub2VecModel", "s"),
        "s2v-ns": _later("baselines.known_subgraphs", "Sub2VecModel", "ns"),
        "gc": _later("baselines.node_pooling", "GraphClassificationModel"),
        "topology": _later("baselines.topology", "TopologyModel"),
        "constant": _later("baselines.constant", "ConstantModel"),
        "bag": _later("baselines.bag", "BagModel"),
        "bag-1hop": _later("baselines.bag", "BagModel", one_hop=True),
        "enrichment": _later("baselines.enrichment", "EnrichmentModel"),
        "diffusion": _later("kernel_machines.kernel_machine", "KernelMachine"),
        "profiles": _later("baselines.profiles", "ProfileModel"),
        "wlks": _later("peers.wlks", "WLKSModel"),
        "s2n": _later("peers.s2n", "S2NModel"),
        "glass": _later("peers.glass", "GLASSModel"),
        "ssnp": _later("peers.ssnp", "SSNPModel"),
        "unsupervised": _later("kernel_machines.unsupervised", "UnsupervisedModel"),
        PORTFOLIO: _later("auto", "AutoModel"),
    }
)


def names_where(capability: str, *, value: bool = True) -> list[str]:
    """Names of the models whose attribute has a value."""
    return [name for name, model in MODELS.items() if getattr(model, capability, None) is value]


def find_model(name: str) -> Model:
    """The model of a name, in this package or of a plug-in; an error lists the names and the nearest."""
    if name in MODELS:
        return MODELS[name]
    found = load_plugin("subgnn.models", name, list(MODELS), what="method", where="recipe")
    if not isinstance(found, Model):
        hint = "a plug-in names an instance of a class derived from subgnn.models.interface.Model"
        raise UserError(f"method is {excerpt(name)}, which is a {type(found).__name__}", where="recipe", hint=hint)
    return found


def model_of(settings: Recipe | ModelSpec) -> Model:
    """The model of a recipe or a specification."""
    baseline_of(settings)
    return find_model(settings.method)


def trainable_model_of(settings: Recipe | ModelSpec) -> TrainableModel:
    """The model of a recipe that is one fit."""
    model = model_of(settings)
    if not isinstance(model, TrainableModel):
        hint = f"accepted: a method other than {settings.method}, which is a portfolio of others"
        raise UserError(f"the method {settings.method} is not a single model", where="recipe", hint=hint)
    return model


def baseline_of(settings: Recipe | ModelSpec) -> TrainableModel | None:
    """The baseline whose scores the model corrects, if it does."""
    name = settings.model.baseline
    if name == "none" or not isinstance(find_model(settings.method), ChannelModel):
        return None
    accepted = ["none", *names_where("is_fitted_in_one_go")]
    found = find_model(name) if name in MODELS else None
    if not isinstance(found, TrainableModel) or not found.is_fitted_in_one_go:
        raise UserError(f"model.baseline is {excerpt(name)}", where="recipe", hint=choices(name, accepted))
    return found


def set_up_model(data: TrainingData, recipe: Recipe) -> SetUp:
    """Make what is to be fitted; a baseline is fitted before the network that corrects it."""
    model, corrected = trainable_model_of(recipe), baseline_of(recipe)
    if corrected is None:
        return model.set_up(data, recipe)
    from subgnn.models.correction import fit_baseline

    baseline, scores = fit_baseline(corrected, data, recipe)
    found, parts = model.set_up(replace(data, scores=scores), recipe), {BASELINE: baseline}
    candidates = [replace(one, checkpoint=replace(one.checkpoint, parts=parts)) for one in found.candidates]
    return replace(found, candidates=candidates)


def open_checkpoint(checkpoint: Checkpoint, graph: Graph, context: LoadContext) -> FittedModel:
    """A fitted model from a checkpoint that was checked; its parts are opened first. The graph is undirected."""
    parts = {name: open_checkpoint(part, graph, context) for name, part in checkpoint.parts.items()}
    fitted = model_of(checkpoint.spec).open(checkpoint, graph, replace(context, parts=parts))
    if (decision := checkpoint.spec.decision) is not None:
        fitted.thresholds = decision.thresholds(checkpoint.spec.classes)
    return fitted


def move_checkpoint(checkpoint: Checkpoint, match: NodeMatch, tables: Tables) -> tuple[Checkpoint, Tables]:
    """A checkpoint for another graph, and the tables it needs there, from those of the old one; parts come first."""
    found = {name: match.vectors(table) for name, table in tables.items()}
    hashes = {name: vectors_hash(table) for name, table in found.items()}

    def move(one: Checkpoint) -> Checkpoint:
        spec, model = one.spec, model_of(one.spec)
        if not model.on_new_graph:
            able = ", ".join(name for name, other in MODELS.items() if other.on_new_graph)
            what = f"{spec.method} cannot answer on a graph other than the one it was trained on"
            raise DataError(what, where="--graph", hint=f"train again on this graph; methods that can: {able}")
        match.notes.append(f"{spec.method}: {model.on_new_graph}")
        parts = {name: move(part) for name, part in one.parts.items()}
        moved = model.moved(replace(one, parts=parts), match, tables.get(spec.vectors_hash))
        graph, novelty = match.graph, None if spec.novelty is None else spec.novelty.moved(match)
        new_spec = replace(moved.spec, graph_hash=graph.content_hash, names_hash=graph.names_hash, novelty=novelty)
        return replace(moved, spec=replace(new_spec, vectors_hash=hashes.get(spec.vectors_hash, "")))

    return move(checkpoint), {hashes[name]: table for name, table in found.items()}


def check_edges(recipe: Recipe, graph: Graph) -> None:
    """Raise :class:`DataError` if the graph has no edges and the model, or the baseline it corrects, needs some."""
    if graph.num_edges:
        return
    for name, model in {recipe.method: model_of(recipe), recipe.model.baseline: baseline_of(recipe)}.items():
        if model is not None and model.needs_edges:
            hint = f"without: {', '.join(names_where('needs_edges', value=False))}"
            raise DataError(f"{name} needs edges, but the graph has none", where="train", hint=hint)
