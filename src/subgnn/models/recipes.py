"""Recipes: read from TOML files (docs/settings.md) and the packaged ones, checked; what a recipe uses of a graph.

A recipe file has a table for each section of :class:`~subgnn.config.settings.Recipe`, one for its method where that has
settings of its own (:class:`~subgnn.config.settings.MethodSettings`), and a list of channels. Any setting is overridden
by ``--set section.key=value``.
"""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from subgnn.config.files import parse_table, with_overrides
from subgnn.config.plugins import allow_plugins
from subgnn.config.recipes import packaged_recipe, read_recipe_file, recipe_groups, recipe_names
from subgnn.config.settings import Recipe
from subgnn.data.graph import ATTRIBUTES, Graph
from subgnn.data.subgraphs import SubgraphSet
from subgnn.errors import UserError, choices, excerpt
from subgnn.models.interface import ChannelModel
from subgnn.models.registry import MODELS, baseline_of, find_model, model_of, trainable_model_of
from subgnn.models.tensor_model import PaperBaselineSettings, tuned_recipes
from subgnn.result import RunResult

_SECTIONS = tuple(f.name for f in fields(Recipe) if is_dataclass(f.default_factory))


def parse_recipe(content: Mapping[str, Any], where: str, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from a mapping, checked.

    ``overrides`` are ``section.key=value``, as in TOML; plain words need no quotes. For a portfolio, those of other
    sections than ``auto`` apply to every candidate.
    """
    merged, place = with_overrides(content, where, overrides)
    method, model = merged.get("method"), merged.get("model")
    models = [find_model(method) if isinstance(method, str) else MODELS[Recipe().method]]
    known = {each.name for each in fields(Recipe)} | {kind.section for kind in models[0].settings}
    if merged.keys() - known or (isinstance(model, dict) and model.get("baseline", "none") != "none"):
        models = [*MODELS.values(), *models]  # others are imported only if they have a part in it
    sections = {kind.section: kind for one in models for kind in one.settings}
    tables = {name: merged.pop(name) for name in sections if name in merged}
    recipe = parse_table(Recipe, merged, place, also_known=sections)
    used = [model for model in (model_of(recipe), baseline_of(recipe)) if model is not None]
    own = [kind.section for model in used for kind in model.settings]
    named = [name for name in sections if name in tables or name in own]
    methods = {name: parse_table(sections[name], tables.get(name, {}), place, name) for name in named}
    names = [channel.name for channel in recipe.channels]
    for name in names:
        if names.count(name) > 1:
            hint = "one [[channels]] entry for each kind and side; num_anchors says how many anchors it has"
            raise UserError(f"the channel {name} occurs {names.count(name)} times", where=where, hint=hint)
    names = [candidate.name for candidate in recipe.auto.candidates]
    for name in names:
        if names.count(name) > 1 or not name or any(letter in name for letter in "/\\\0") or name.startswith("."):
            what = f"auto.candidates has the name {excerpt(name)}" + (" twice" if names.count(name) > 1 else "")
            hint = "accepted: a different name for each, without / or \\"
            raise UserError(what, where=place("auto.candidates"), hint=hint)
    for name in recipe.auto.only:
        if name not in names:
            raise UserError(f"auto.only has {excerpt(name)}", where=place("auto.only"), hint=choices(name, names))
    added = tuple(override for override in overrides if not override.lstrip().startswith("auto."))
    candidates = tuple(replace(one, set=one.set + added) for one in recipe.auto.candidates)
    return replace(recipe, methods=methods, auto=replace(recipe.auto, candidates=candidates))


def find_recipe(name: str, overrides: Sequence[str] = (), *, allow: bool = True) -> Recipe:
    """A packaged recipe by name, or a recipe file or a run by its path, with overrides.

    With ``allow``, a file is the user's own, and the plug-ins it names may be imported.
    """
    if (file := read_recipe_file(name)) is not None:
        if allow:
            allow_plugins(file[1])
        return parse_recipe(file[1], str(file[0]), overrides)
    packaged = packaged_recipe(name)
    recipe = parse_recipe(packaged.content, str(packaged.path), [*packaged.settings, *overrides])
    return replace(recipe, published=packaged.published.get("") or packaged.published.get(recipe.embeddings.source, {}))


def portfolio(recipe: Recipe, attributes: Collection[str] | None = None) -> dict[str, Recipe]:
    """The recipes of a portfolio by the names of its candidates: those of ``auto.only``, or all.

    Candidates for graphs with other ``attributes`` are left out; None leaves out none.
    """
    auto = recipe.auto
    wanted = [one for one in auto.candidates if not auto.only or one.name in auto.only]
    chosen = [one for one in wanted if attributes is None or set(one.for_graphs_with) <= set(attributes)]
    if wanted and not chosen:
        needed = ", ".join(sorted({name for one in wanted for name in one.for_graphs_with}))
        what = f"{', '.join(one.name for one in wanted)}: made for graphs with {needed}, but this one has none"
        raise UserError(what, where="auto.candidates", hint="name other candidates, or none, in auto.only")
    # Somebody else's run may name the files of candidates.
    return {one.name: replace(find_recipe(one.recipe, one.set, allow=False), name=one.name) for one in chosen}


def check_recipe(recipe: Recipe, graph: Graph, *, complete: bool = True) -> None:
    """Refuse settings that do not fit together or do not fit the graph, before any work.

    A search may start from a recipe that is not ``complete``: a network that sees nothing yet.
    """
    model, members = model_of(recipe), recipe.training.members
    channels = [name for name, one in MODELS.items() if isinstance(one, ChannelModel)]
    if members > 1 and not isinstance(model, ChannelModel):
        hint = f"only {', '.join(channels)} can fit several networks; leave training.members out"
        raise UserError(f"training.members is {members}, but the method is {recipe.method}", where="recipe", hint=hint)
    check_tunable(recipe)
    if recipe.is_portfolio:
        if not recipe.auto.candidates:
            hint = "list some as [[auto.candidates]] with name and recipe, or use --recipe auto"
            raise UserError("auto.candidates is empty", where="recipe", hint=hint)
        for name, candidate in portfolio(recipe).items():
            if candidate.is_portfolio or not model_of(candidate).predicts_new_subgraphs:
                hint = "accepted: methods that predict new subgraphs, and are not portfolios"
                what = f"the method of the candidate {excerpt(name)} is {candidate.method}"
                raise UserError(what, where="auto.candidates", hint=hint)
        return
    trainable, baseline = trainable_model_of(recipe), baseline_of(recipe)
    trainable.candidates(recipe)
    trainable.check(recipe, graph)
    if baseline is not None:
        baseline.check_as_baseline(recipe)
    if complete and isinstance(trainable, ChannelModel):
        trainable.check_inputs(recipe)


def check_tunable(recipe: Recipe) -> None:
    """Raise :class:`UserError` for ``baseline.tune_settings`` that the model does not have, or of a wrong form."""
    if recipe.of(PaperBaselineSettings).tune_settings and PaperBaselineSettings not in model_of(recipe).settings:
        accepted = ", ".join(name for name, model in MODELS.items() if PaperBaselineSettings in model.settings)
        hint = f"accepted for {accepted}; subgnn tune searches the settings of any recipe"
        raise UserError(f"the method is {recipe.method}", where="baseline.tune_settings", hint=hint)
    tuned_recipes(recipe)


def used_attributes(recipe: Recipe) -> frozenset[str]:
    """What a recipe uses of a graph beside nodes and edges, with what the baseline uses that it corrects.

    A portfolio uses what some candidate uses.
    """
    if recipe.is_portfolio:
        return frozenset().union(*(used_attributes(one) for one in portfolio(recipe).values()))
    baseline = baseline_of(recipe)
    return trainable_model_of(recipe).uses(recipe) | (frozenset() if baseline is None else baseline.uses(recipe))


_ABSENT = "absent nodes"


def unused_data(recipe: Recipe, graph: Graph, subgraphs: SubgraphSet | None = None) -> list[str]:
    """What the data, as they were read, have and a recipe does not use, after settings of it that have no effect."""
    found = list[str]()
    if not recipe.is_portfolio:
        for name, switch in trainable_model_of(recipe).switches.items():
            setting = switch.removesuffix("=true")
            section, _, key = setting.partition(".")
            if setting != switch and name not in graph.attributes and recipe.plain().get(section, {}).get(key):
                found.append(f"{setting} (the graph has no {ATTRIBUTES[name]})")
    used = used_attributes(recipe)
    absent = subgraphs is not None and subgraphs.absent is not None
    given = {name: ATTRIBUTES[name] for name in graph.attributes} | ({"absent": _ABSENT} if absent else {})
    return found + [words for name, words in given.items() if name not in used]


def unused_line(recipe: Recipe, graph: Graph, subgraphs: SubgraphSet | None = None) -> str:
    """One line that says what the data have and a recipe does not use, and what would use it, or nothing.

    Example:
        >>> graph = Graph.from_edges([0], [1], weights=[2.0])
        >>> unused_line(find_recipe("bag"), graph).partition(", ")[0]
        'not used by recipe bag: edge weights (recipes that use them: auto'
    """
    parts, attributes = list[str](), {words: name for name, words in ATTRIBUTES.items()} | {_ABSENT: "absent"}
    switches = {} if recipe.is_portfolio else trainable_model_of(recipe).switches
    for words in unused_data(recipe, graph, subgraphs):
        if words not in attributes:
            parts.append(words)
            continue
        name = attributes[words]
        switch = switches.get(name, "")
        if switch and name not in used_attributes(parse_recipe(recipe.plain(), recipe.name, [switch])):
            switch = ""
        if recipe.is_portfolio:  # its variants of recipes, too
            kind, known = "candidates", portfolio(replace(recipe, auto=replace(recipe.auto, only=())))
        else:
            kind, known = "recipes", {other: find_recipe(other) for other in recipe_groups()["recipes"]}
        others = [other for other, one in known.items() if other != recipe.name and _would_use(one, name, graph)]
        ways = [f"--set {switch}"] * bool(switch)
        ways += [f"{kind} that use {'it' if name == 'direction' else 'them'}: {', '.join(others)}"] * bool(others)
        ways += ["for data split --method time, --as-of and --edges-until"] * (name == "times")
        parts.append(f"{words} ({'; '.join(ways)})" if ways else words)
    return f"not used by recipe {recipe.name}: {'; '.join(parts)}" if parts else ""


def _would_use(recipe: Recipe, attribute: str, graph: Graph) -> bool:
    """Whether a recipe for labelled subgraphs uses an attribute, and accepts the graph."""
    if attribute not in used_attributes(recipe) or not model_of(recipe).vectors_need_labels:
        return False
    try:
        check_recipe(recipe, graph)
    except UserError:
        return False
    return True


def recipe_toml(recipe: Recipe) -> str:
    """All settings of a recipe, as a file for ``--recipe``."""
    content = recipe.plain()
    lines = [f"{key} = {setting_text(content[key])}" for key in ("name", "note", "method")]
    for channel in content["channels"]:
        lines += ["", "[[channels]]", *_pairs(channel)]
    for section in (*_SECTIONS, *recipe.methods, "published"):
        if content[section]:
            lines += ["", f"[{section}]", *_pairs(content[section])]
    return "\n".join(lines) + "\n"


def train_command(recipe: Recipe, result: RunResult) -> tuple[str, bool]:
    """The command that trains a run again, and whether it needs the settings as a file; packaged recipes do not."""
    packaged = find_recipe(recipe.name) if recipe.name in recipe_names() else None
    needs_file = packaged is None or (recipe.channels, recipe.method) != (packaged.channels, packaged.method)
    name = f"{recipe.name}.toml" if needs_file else recipe.name
    words = ["subgnn", "train", result.source or "DIR", "--recipe", name]
    if packaged is not None and not needs_file:
        ours, theirs = recipe.plain(), packaged.plain()
        for section in (*_SECTIONS, *recipe.methods):
            for key, value in ours[section].items():
                if section not in theirs or value != theirs[section][key]:
                    words += ["--set", f"{section}.{key}={setting_text(value)}"]
    words += ["--out", "RUN", "--seed", str(result.seed)]
    words += ["--split", result.split] if result.split != "stored" else []
    words += ["--device", result.device.partition(":")[0]]
    return shlex.join(words), needs_file


def _pairs(content: Mapping[str, Any]) -> list[str]:
    keys = (key if key.isidentifier() else json.dumps(key) for key in content)
    return [f"{key} = {setting_text(value)}" for key, value in zip(keys, content.values(), strict=True)]


def setting_text(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(_pairs(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(setting_text, value)) + "]"
    if isinstance(value, (bool, str)):
        # TOML escapes as JSON does, plus one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
