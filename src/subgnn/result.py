"""The result of a run: what ``run.json`` holds, ``subgnn train --json`` prints, and pages and tables are drawn from.

``docs/command_line.md`` explains the fields. A field that has its default value is left out of the file.
"""

from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from subgnn.config.files import AnyNumber, Seed, parse_table
from subgnn.errors import DataError, UserError
from subgnn.storage.files import read_json, write_json

RESULTS = "run.json"
Scores = dict[str, AnyNumber]  # metrics by name; NaN where one is undefined
Interval = tuple[AnyNumber, AnyNumber]
_AGAIN = "remove it, and finish the run with subgnn train --resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Times of a run; ``train`` of a portfolio is ``judge``, all folds, and ``refit``, the final members."""

    pretrain: float
    prepare: float
    train: float
    epoch_median: float
    judge: float | None = None
    refit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A row of a portfolio's leaderboard; without a score it was not judged, and ``note`` says why."""

    name: str
    recipe: str
    score: AnyNumber | None
    low: AnyNumber | None
    high: AnyNumber | None
    seconds: float
    weight: float
    note: str
    test: AnyNumber | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One network of an ensemble (``training.members``)."""

    selected_epoch: int
    epochs: int
    val: Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedBaseline:
    """The baseline that a network corrects."""

    method: str
    candidate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """The effect of a threshold on some subgraphs; None where it is undefined."""

    alerts: float
    hits: float
    positives: float
    subgraphs: int
    precision: float | None
    precision_interval: Interval | None
    recall: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAlerts:
    """A label's threshold and its effects; one half if the aim is not ``reached``, and ``nearest`` comes closest."""

    label: str
    threshold: AnyNumber
    reached: bool
    chosen: Alerts
    nearest: Alerts | None = None
    train: Alerts | None = None
    val: Alerts | None = None
    test: Alerts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdReport:
    """Thresholds for an aim; ``chosen_on`` is ``validation`` or ``out-of-fold``."""

    aim: str
    chosen_on: str
    labels: tuple[LabelAlerts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPoint:
    """The out-of-fold score of models that learned from this many labelled subgraphs, with its 95 % interval."""

    subgraphs: int
    score: AnyNumber
    low: AnyNumber
    high: AnyNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurve:
    """Scores over the number of labelled subgraphs, the last with all of them, and whether more would help."""

    points: tuple[LearningPoint, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedFrom:
    """The run that another was updated from, how the graph had changed, and scores of both on the same subgraphs."""

    run: str
    date: str
    graph: str
    subgraphs: int = 0
    before: Scores = field(default_factory=dict)
    after: Scores = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Options with which edges and labels were read, for later versions of them; ``columns`` of edges, by role."""

    id_base: int | None = None
    repeated: str | None = None
    encoding: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    label_separator: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """The dataset of a run: its size, SHA-256 of its content, and the source and licence that its card states."""

    nodes: int
    edges: int
    splits: dict[str, int]
    classes: int
    graph_hash: str
    subgraphs_hash: str
    source: str = ""
    licence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a finished run. Only a portfolio fills the fields from ``metric`` to ``judged``.

    ``late`` names the candidates that there was no time for, and ``judged`` how many subgraphs candidates were compared
    on, where that was a sample. ``calibration_error`` is the expected one, on test or, without test, on ``val``.
    """

    run: str
    dataset: str
    source: str
    reading: Reading = Reading()
    split: str
    edges_until: AnyNumber | None = None
    look_ahead: bool = False
    as_of: str = ""
    as_of_step: AnyNumber = 0.0
    recipe: str
    method: str
    seed: Seed
    task: str
    fitted_to: tuple[str, ...]
    unused: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    selected_epoch: int
    epochs: int
    train: Scores = field(default_factory=dict)
    val: Scores
    test: Scores
    intervals: dict[str, Interval]
    calibration_error: AnyNumber | None = None
    data: DataFacts | None = None
    published: dict[str, Any]
    select_by: str = "auto"
    threshold: ThresholdReport | None = None
    candidate: str = ""
    candidates: dict[str, Scores] = field(default_factory=dict)
    embeddings: str = ""
    members: tuple[Member, ...] = ()
    baseline: CorrectedBaseline | None = None
    metric: str = ""
    chosen: str = ""
    rules: Scores = field(default_factory=dict)
    leaderboard: tuple[Candidate, ...] = ()
    signal: str = ""
    signals: tuple[str, ...] = ()
    learning_curve: LearningCurve | None = None
    interrupted: bool = False
    late: tuple[str, ...] = ()
    judged: int = 0
    updated_from: UpdatedFrom | None = None
    seconds: Seconds
    peak_memory_mb: float
    device: str
    devices: int
    versions: dict[str, str]
    date: str

    @property
    def is_portfolio(self) -> bool:
        """Whether candidates were compared, so that there is a leaderboard, and no epochs."""
        return bool(self.leaderboard)

    @property
    def headline(self) -> str:
        """The metric of first interest: R^2 for real values, else micro-F1."""
        return "r2" if self.task == "regression" else "micro_f1"

    def scores(self, split: str) -> Scores:
        """Metrics on a split; empty where it was not scored."""
        return {"train": self.train, "val": self.val, "test": self.test}[split]

    def scores_name(self, split: str) -> str:
        """The name of a split's scores for tables: those of a portfolio under ``val`` are out of fold."""
        return "out of fold" if split == "val" and self.is_portfolio else split

    def to_json(self) -> dict[str, Any]:
        return dict(plain_values(self))

    def save(self, folder: Path) -> None:
        write_json(self.to_json(), folder / RESULTS)


def plain_values(value: Any) -> Any:
    """A result, or a part of it, as values that JSON can hold, without fields that have their defaults."""
    if is_dataclass(value):
        found = {}
        for one in fields(value):
            item = getattr(value, one.name)
            if item != (one.default if one.default_factory is MISSING else one.default_factory()):
                found[one.name] = plain_values(item)
        return found
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}
    return [plain_values(item) for item in value] if isinstance(value, (list, tuple)) else value


def parse_result(content: Any, where: str, again: str) -> RunResult:
    """A result from the content of run.json, with all types checked; ``again`` says what to do if it is damaged."""
    try:
        return parse_table(RunResult, content, where)
    except UserError as error:
        raise DataError(error.what, where=where, hint=again) from None


def read_result(folder: Path) -> RunResult:
    """The result of a finished run, from run.json in its folder."""
    path = folder / RESULTS
    if not path.is_file():
        hint = "subgnn train writes one, and continues an interrupted one with --resume"
        raise DataError("no finished run", where=str(folder), hint=hint)
    return parse_result(read_json(path, _AGAIN), str(path), _AGAIN)
