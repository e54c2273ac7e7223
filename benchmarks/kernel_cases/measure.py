"""Time a kernel and other packages on the same task, and check that their results agree."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

MOST_CALLS = 50
PATIENCE = 1.0  # seconds after which a call is not repeated


@dataclass(frozen=True, slots=True)
class Rival:
    """Another implementation of the same task.

    Args:
        name: its name in the table.
        package: the package it needs; without it the rival is skipped.
        call: does the work; setting up (building that package's graph) is not part of it.
        agrees: whether our answer and this one are compatible; not timed.
        part: how many items it is timed on; its time is then scaled to all of them. None: all.
        agreement: the word for a match; answers that are approximate or random are never "equal".
        prepare: sets up what ``call`` needs; not timed.
    """

    name: str
    package: str
    call: Callable[[], Any]
    agrees: Callable[[Any, Any], bool]
    part: int | None = None
    agreement: str = "equal"
    prepare: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel on one graph: ``items`` pieces of work, called ``unit``."""

    kernel: str
    graph: str
    items: int
    unit: str
    ours: Callable[[], Any]
    rivals: list[Rival]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; ``rival_seconds`` is for all items, scaled where fewer were timed."""

    kernel: str
    graph: str
    work: str
    ours_seconds: float
    ours_first_call_seconds: float
    ours_calls: int
    rival: str
    timed_on: str
    scaled: bool
    rival_seconds: float
    rival_calls: int
    ratio: float
    agrees: bool
    agreement: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the file."""
        return asdict(self)


@dataclass(slots=True)
class Report:
    """The measurements so far."""

    rows: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def run(self, case: Case) -> None:
        """Time a case: our first call, which compiles, our calls before the rivals, the rivals, and ours again.

        The shortest call counts, ours and theirs. Ours is spread over the whole of the case because it uses every core,
        and so suffers most from whatever else the machine does for a moment.
        """
        first = _best(case.ours, least=1, patience=0.0).without_answer()
        ours = _best(case.ours, least=2, patience=PATIENCE / 2)
        timed: list[tuple[Rival, Timing, bool]] = []
        for rival in case.rivals:
            if importlib.util.find_spec(rival.package) is None:
                self.skipped.append(f"{case.kernel}, {case.graph}: {rival.name} ({rival.package} is not installed)")
                continue
            if rival.prepare is not None:
                rival.prepare()
            theirs = _best(rival.call, least=1, patience=PATIENCE)
            timed.append((rival, theirs.without_answer(), bool(rival.agrees(ours.answer, theirs.answer))))
        ours = ours.without_answer().best_with(_best(case.ours, least=1, patience=PATIENCE / 2))
        self.rows += [_row(case, first.seconds, ours, rival, theirs, agrees) for rival, theirs, agrees in timed]


@dataclass(frozen=True, slots=True)
class Timing:
    """The shortest of some calls, and the answer of the last."""

    answer: Any
    seconds: float
    calls: int

    def without_answer(self) -> Timing:
        """The same, holding no memory."""
        return Timing(None, self.seconds, self.calls)

    def best_with(self, other: Timing) -> Timing:
        """The calls of both."""
        return Timing(None, min(self.seconds, other.seconds), self.calls + other.calls)


def _best(call: Callable[[], Any], *, least: int, patience: float) -> Timing:
    best, spent, done = float("inf"), 0.0, 0
    answer = None
    while done < MOST_CALLS and (done < least or spent < patience):
        answer = None  # so that two large answers never stand side by side
        begin = time.perf_counter()
        answer = call()
        seconds = time.perf_counter() - begin
        best, spent, done = min(best, seconds), spent + seconds, done + 1
    return Timing(answer, best, done)


def _row(case: Case, first: float, ours: Timing, rival: Rival, theirs: Timing, agrees: bool) -> Row:
    part = case.items if rival.part is None else min(rival.part, case.items)
    seconds = theirs.seconds * case.items / part
    return Row(
        kernel=case.kernel,
        graph=case.graph,
        work=f"{case.items:,} {case.unit}",
        ours_seconds=ours.seconds,
        ours_first_call_seconds=first,
        ours_calls=ours.calls,
        rival=rival.name,
        timed_on="all" if part == case.items else f"{part:,} of {case.items:,}",
        scaled=part < case.items,
        rival_seconds=seconds,
        rival_calls=theirs.calls,
        ratio=seconds / ours.seconds,
        agrees=agrees,
        agreement=rival.agreement if agrees else "DIFFERS",
    )
