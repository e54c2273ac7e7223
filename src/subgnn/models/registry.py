"""The table of models by name; the model of a recipe, set up, and that of a checkpoint, opened.

============ ===================================================== ============== =============
name         the vector of a subgraph                              file           new subgraphs
============ ===================================================== ============== =============
subgnn       channels, layers and readout of the paper             subgnn/        yes
avg          the mean of its nodes' embeddings                     node_pooling   yes
mn-gin       a meta node joined to its nodes, embedded with G      meta_node      no
mn-gat       the same, with attention                              meta_node      no
s2v-n        documents of random walks over its nodes (doc2vec)    sub2vec        no
s2v-s        the same walks, nodes replaced by binned degrees      sub2vec        no
s2v-ns       both                                                  sub2vec        no
gc           a separate graph (GIN, sum pooling)                   node_pooling   yes
topology     statistics of it and of its border                    topology       yes
bag          the bag of its nodes                                  bag            yes
bag-1hop     the bag beside itself spread one hop                  bag            yes
diffusion    a random walk from it, compared with chance           kernel_machine yes
profiles     the same walk, compared with those of each class      profiles       yes
wlks         colours of refinement in it and in G                  wlks           yes
s2n          a node of the graph of subgraphs (GCN, GCNII)         s2n            yes
glass        its nodes after message passing that labels them      glass          yes
ssnp         its nodes and sampled border after message passing    ssnp           yes
unsupervised statistics and principal components of a walk       unsupervised   yes
auto         the vectors of several of these models side by side   auto           yes
============ ===================================================== ============== =============

avg to gc are the paper's baselines (section 5, appendix D); topology to profiles are beyond it: a model that does
not beat them has learned nothing that needs it. wlks, s2n, glass and ssnp were published after the paper for the same
task (docs/peers.md). auto is a portfolio of models that predict new subgraphs.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from operator import attrgetter

from subgnn.config.files import parse_recipe, tuned_recipes
from subgnn.config.plugins import load_plugin
from subgnn.config.recipes import find_recipe, recipe_groups
from subgnn.config.settings import Recipe
from subgnn.data.graph import ATTRIBUTES, Graph
from subgnn.errors import DataError, UserError, choices, excerpt
from subgnn.models.auto import AutoModel
from subgnn.models.baselines.bag import BagModel
from subgnn.models.baselines.meta_node import MetaNodeModel
from subgnn.models.baselines.node_pooling import AverageModel, GraphClassificationModel
from subgnn.models.baselines.profiles import ProfileModel
from subgnn.models.baselines.sub2vec import Sub2VecModel
from subgnn.models.baselines.topology import TopologyModel
from subgnn.models.correction import fit_baseline
from subgnn.models.interface import Cost, FittedModel, Model, Opening, Settings, SetUp, Sizes, TrainingData
from subgnn.models.kernel_machines.kernel_machine import KernelMachine
from subgnn.models.kernel_machines.unsupervised import UnsupervisedModel
from subgnn.models.peers.glass import GLASSModel
from subgnn.models.peers.s2n import S2NModel
from subgnn.models.peers.ssnp import SSNPModel
from subgnn.models.peers.wlks import WLKSModel
from subgnn.models.spec import BASELINE, Checkpoint
from subgnn.models.subgnn.fitted import SubGNNModel

MODELS: dict[str, Model] = {
    "subgnn": SubGNNModel(),
    "avg": AverageModel(),
    "mn-gin": MetaNodeModel(attention=False),
    "mn-gat": MetaNodeModel(attention=True),
    "s2v-n": Sub2VecModel("n"),
    "s2v-s": Sub2VecModel("s"),
    "s2v-ns": Sub2VecModel("ns"),
    "gc": GraphClassificationModel(),
    "topology": TopologyModel(),
    "bag": BagModel(),
    "bag-1hop": BagModel(one_hop=True),
    "diffusion": KernelMachine(),
    "profiles": ProfileModel(),
    "wlks": WLKSModel(),
    "s2n": S2NModel(),
    "glass": GLASSModel(),
    "ssnp": SSNPModel(),
    "unsupervised": UnsupervisedModel(),
    "auto": AutoModel(lambda settings: model_of(settings)),
}


def names_where(capability: str, *, value: bool = True) -> list[str]:
    """Names of the models whose attribute has a value."""
    return [name for name, model in MODELS.items() if getattr(model, capability) is value]


def find_model(name: str) -> Model:
    """The model of a name, in this package or of a plug-in; an error lists the names and the nearest."""
    if name in MODELS:
        return MODELS[name]
    found = load_plugin("subgnn.models", name, list(MODELS), what="method", where="recipe")
    if not isinstance(found, Model):
        hint = "a plug-in names an instance of a class derived from subgnn.models.interface.Model"
        raise UserError(f"method is {excerpt(name)}, which is a {type(found).__name__}", where="recipe", hint=hint)
    return found


def corrects_baseline(settings: Settings) -> bool:
    """Whether the model corrects the scores of a baseline."""
    return find_model(settings.method).corrects_baselines and settings.model.baseline != "none"


def model_of(settings: Settings) -> Model:
    """The model of a recipe or a specification."""
    if corrects_baseline(settings):
        _find_baseline(settings.model.baseline)
    return find_model(settings.method)


def used_attributes(recipe: Recipe) -> frozenset[str]:
    """What a recipe uses of a graph beside nodes and edges, with what the baseline uses that it corrects."""
    used = model_of(recipe).uses(recipe)
    return used | _find_baseline(recipe.model.baseline).uses(recipe) if corrects_baseline(recipe) else used


def unused_data(recipe: Recipe, graph: Graph) -> list[str]:
    """What a graph has and a recipe does not use, as ``edge weights``, after settings of it that have no effect.

    Args:
        graph: as it was read, directed if it is.
    """
    used, model = used_attributes(recipe), model_of(recipe)
    found = list[str]()
    if recipe.training.focal > 0 and model.is_fitted_in_one_go:
        found.append("focal loss (training.focal; this model is fitted in one go)")
    for name, switch in model.switches.items():
        setting = switch.removesuffix("=true")
        if setting != switch and name not in graph.attributes and attrgetter(setting)(recipe):
            found.append(f"{setting} (the graph has no {ATTRIBUTES[name]})")
    return found + [ATTRIBUTES[name] for name in graph.attributes if name not in used]


def unused_line(recipe: Recipe, graph: Graph) -> str:
    """One line that says what a graph has and a recipe does not use, and what would use it; empty if there is nothing.

    Example:
        >>> graph = Graph.from_edges([0], [1], weights=[2.0])
        >>> unused_line(find_recipe("bag"), graph).partition(", ")[0]
        'not used by recipe bag: edge weights (recipes that use them: auto'
    """
    parts, attributes = list[str](), {words: name for name, words in ATTRIBUTES.items()}
    for words in unused_data(recipe, graph):
        if words not in attributes:
            parts.append(words)
            continue
        name = attributes[words]
        switch = model_of(recipe).switches.get(name, "")
        if switch and name not in used_attributes(parse_recipe(asdict(recipe), recipe.name, [switch])):
            switch = ""
        names = [other for other in recipe_groups()["recipes"] if other != recipe.name]
        others = [other for other in names if _would_use(find_recipe(other), name, graph)]
        ways = [f"--set {switch}"] * bool(switch)
        ways += [f"recipes that use {'it' if name == 'direction' else 'them'}: {', '.join(others)}"] * bool(others)
        ways += ["for data split --method time and --edges-until"] * (name == "times")
        parts.append(f"{words} ({'; '.join(ways)})" if ways else words)
    return f"not used by recipe {recipe.name}: {'; '.join(parts)}" if parts else ""


def _would_use(recipe: Recipe, attribute: str, graph: Graph) -> bool:
    """Whether a recipe for labelled subgraphs uses an attribute, and accepts the graph."""
    if attribute not in used_attributes(recipe) or not model_of(recipe).vectors_need_labels:
        return False
    try:
        model_of(recipe).check(recipe, graph)
    except UserError:
        return False
    return True


def set_up_model(data: TrainingData, recipe: Recipe) -> SetUp:
    """Make what is to be fitted; a baseline is fitted before the network that corrects it."""
    model = model_of(recipe)
    if not corrects_baseline(recipe):
        return model.set_up(data, recipe)
    baseline, scores = fit_baseline(_find_baseline(recipe.model.baseline), data, recipe)
    found = model.set_up(replace(data, scores=scores), recipe)
    parts = {BASELINE: baseline}
    return replace(
        found, candidates=[replace(c, checkpoint=replace(c.checkpoint, parts=parts)) for c in found.candidates]
    )


def estimated_cost(recipe: Recipe, sizes: Sizes) -> Cost:
    """What fits of a recipe take, with those of the baseline it corrects: to all subgraphs, and to five folds."""
    found = model_of(recipe).cost(recipe, sizes)
    if not corrects_baseline(recipe):
        return found
    solved = replace(recipe, training=replace(recipe.training, epochs=0))  # networks among its choices are left out
    baseline = _find_baseline(recipe.model.baseline).cost(solved, sizes)
    return Cost(found.fit + 6 * baseline.fit, found.once + baseline.once)


def open_checkpoint(checkpoint: Checkpoint, graph: Graph, opening: Opening) -> FittedModel:
    """A fitted model from a checkpoint that was checked (:mod:`subgnn.models.integrity`); its parts are opened first.

    Args:
        graph: undirected.
    """
    parts = {name: open_checkpoint(part, graph, opening) for name, part in checkpoint.parts.items()}
    fitted, decision = (
        model_of(checkpoint.spec).open(checkpoint, graph, replace(opening, parts=parts)),
        checkpoint.spec.decision,
    )
    if decision is not None:
        fitted.thresholds = decision.thresholds(checkpoint.spec.classes)
    return fitted


def _find_baseline(name: str) -> Model:
    accepted = ["none", *names_where("is_fitted_in_one_go")]
    if name not in accepted:
        raise UserError(f"model.baseline is {excerpt(name)}", where="recipe", hint=choices(name, accepted))
    return MODELS[name]


def check_recipe(recipe: Recipe, graph: Graph) -> None:
    """Raise :class:`UserError` for settings that do not fit together or do not fit the graph, before any work."""
    model = model_of(recipe)
    members = recipe.training.members
    if members > 1 and not model.has_ensembles:
        names = ", ".join(names_where("has_ensembles"))
        hint = f"several networks are fitted for {names} alone: leave training.members out"
        raise UserError(f"training.members is {members}, and the method {recipe.method}", where="recipe", hint=hint)
    check_tunable(recipe)
    model.candidates(recipe)
    model.check(recipe, graph)
    if corrects_baseline(recipe):
        _find_baseline(recipe.model.baseline).check_as_baseline(recipe)


def check_tunable(recipe: Recipe) -> None:
    """Raise :class:`UserError` for ``baseline.tune_settings`` that the model does not have, or of a wrong form."""
    if recipe.baseline.tune_settings and not model_of(recipe).has_tunable_settings:
        accepted = ", ".join(names_where("has_tunable_settings"))
        hint = f"accepted for {accepted}; subgnn tune searches the settings of any recipe"
        raise UserError(f"the method is {recipe.method}", where="baseline.tune_settings", hint=hint)
    tuned_recipes(recipe)


def check_edges(recipe: Recipe, graph: Graph) -> None:
    """Raise :class:`DataError` if the graph has no edges and the model, or the baseline it corrects, needs some."""
    if graph.num_edges:
        return
    names = [recipe.method, *([recipe.model.baseline] if corrects_baseline(recipe) else [])]
    for name in names:
        if find_model(name).needs_edges:
            hint = f"without: {', '.join(names_where('needs_edges', value=False))}"
            raise DataError(f"{name} needs edges, and the graph has none", where="train", hint=hint)
