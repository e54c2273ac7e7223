"""Typed settings of a run: a dataclass for each section of a recipe; those of methods are beside their models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from subgnn.config.files import LARGEST, Bounds, Count, Depth, Probability, Seed, Size, Width

PORTFOLIO = "auto"  # the method of a portfolio of recipes


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """One subchannel: a kind and side of :mod:`subgnn.channels.table`, and a number of anchors."""

    kind: str
    side: str
    num_anchors: Size
    similarity: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.side}"


@dataclass(frozen=True, slots=True)
class PrepareSettings:
    """Anchors and similarities (docs/settings.md explains each setting)."""

    hops: Count = 1
    patch_length: Size = 50
    walks: Size = 5
    walk_length: Size = 10
    beta: Probability = 0.65
    own_hops: Literal["exact", "bounded"] = "exact"
    border_anchors: Literal["drawn", "heaviest"] = "drawn"


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Where node embeddings come from."""

    source: str = "random"
    dim: Width = 64
    scale: float = 0.1
    trainable: bool = True
    features: Literal["none", "beside", "instead"] = "none"


@dataclass(frozen=True, slots=True)
class PretrainSettings:
    """Node embeddings by link prediction (paper, appendix on pretraining); their width is embeddings.dim."""

    seed: Seed = 0  # apart from the run's, so that runs of many seeds share one pretraining
    hidden: Size = 128
    dropout: Probability = 0.4
    lr: float = 5e-3
    weight_decay: float = 5e-4
    batch_size: Size = 16384
    epochs: Count = 20
    steps: Count = 20
    fraction: Probability = 0.3
    walk_length: Size = 16


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The network (paper, section 4); baseline names a model whose scores it corrects."""

    layers: Annotated[int, Bounds(0, 1000)] = 1
    component_init: Literal["sum", "mean", "max"] = "sum"
    trainable_components: bool = False
    initial: bool = True
    readout: Literal["sum", "mean", "max"] = "sum"
    norm: Literal["none", "batch"] = "none"
    hidden_norm: Literal["none", "batch"] = "none"
    topology: bool = False
    lstm_layers: Depth = 1
    lstm_dropout: Probability = 0.0
    head: tuple[Size, Size] = (64, 32)
    dropout: Probability = 0.2
    baseline: str = "none"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How the network is fitted, and what epochs and thresholds are selected by."""

    epochs: Count = 200
    batch_size: Count = 64
    lr: float = 1e-3
    weight_decay: float = 0.0
    clip: float = 0.0
    patience: int = 0
    schedule: Literal["constant", "plateau"] = "constant"
    class_weights: bool | str = False
    members: Depth = 1
    plateau: Literal["train loss", "val loss"] = "train loss"
    plateau_factor: Probability = 0.7
    select_from: int = 0
    repeats: Count = 1
    select_by: str = "auto"
    threshold: str = "none"


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """One candidate of a portfolio: a recipe, overrides of its settings, and attributes that the graph must have."""

    name: str
    recipe: str
    set: tuple[str, ...] = ()
    for_graphs_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AutoSettings:
    """A portfolio of recipes, judged by cross-validation (method ``auto``)."""

    folds: Annotated[int, Bounds(2, 100)] = 5
    repeats: Annotated[int, Bounds(0, 100)] = 0
    time: Annotated[float, Bounds(1, LARGEST)] = 300.0
    fit_on: Literal["train and val", "train"] = "train and val"
    only: tuple[str, ...] = ()
    candidates: tuple[CandidateSettings, ...] = ()


@dataclass(frozen=True, slots=True)
class MethodSettings:
    """Settings of a method, declared beside its model; ``section`` is the name of their table in a recipe."""

    section: ClassVar[str]


Method = TypeVar("Method", bound=MethodSettings)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ModelRecipe:
    """The settings that a model is built by; ``methods`` are the settings of methods by section."""

    name: str = "unnamed"
    note: str = ""
    method: str = "subgnn"
    channels: tuple[ChannelSettings, ...] = ()
    prepare: PrepareSettings = field(default_factory=PrepareSettings)
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    methods: Mapping[str, MethodSettings] = field(default_factory=dict, metadata={"derived": True})

    def of(self, kind: type[Method]) -> Method:
        """The settings of a kind; the defaults if they are not there."""
        return cast("Method", self.methods[kind.section]) if kind.section in self.methods else kind()

    def plain(self) -> dict[str, Any]:
        """All settings by section and key, as in a recipe file."""
        found = asdict(self)
        methods: dict[str, Any] = found.pop("methods")
        return found | methods


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(ModelRecipe):
    """All settings of a run, and the published number for it."""

    training: TrainingSettings = field(default_factory=TrainingSettings)
    auto: AutoSettings = field(default_factory=AutoSettings)
    published: dict[str, Any] = field(default_factory=dict)

    def with_method_settings(self, settings: MethodSettings) -> Recipe:
        return replace(self, methods={**self.methods, settings.section: settings})

    @property
    def is_portfolio(self) -> bool:
        """Whether it names candidates, which are trained by recipes of their own."""
        return self.method == PORTFOLIO


def recipe_key(recipe: Recipe) -> dict[str, Any]:
    """All settings of a recipe but its name, note and published number.

    Of the candidates of a portfolio, those for graphs with certain attributes do not enter: predictions of each are
    kept under a key of their own.
    """
    settings = {key: value for key, value in recipe.plain().items() if key not in ("name", "note", "published")}
    candidates = tuple(one for one in settings["auto"]["candidates"] if not one["for_graphs_with"])
    return settings | {"auto": settings["auto"] | {"candidates": candidates}}
