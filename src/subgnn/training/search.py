"""Fit the candidates of a portfolio to the folds of a cross-validation: on all cores, and within a time limit.

A job is one fit: of one candidate, to all folds but one. Jobs are independent, so they run in any order, in processes
of this machine or on a Ray cluster, and the result is the same: each fit uses one thread, and decisions about a
candidate depend on the predictions of others, never on the time at which they arrive.

1. *First folds.* Every candidate that is fitted in one go predicts the first fold. That measures its cost, and what it
   gains over always predicting the most frequent class.
2. *Other folds.* If there is time for all, all are fitted. If not, those of the highest gain for their cost come first,
   and candidates that would not be finished are left out.
3. *Networks*, one after the other, as what the candidates before have scored decides whether a network may still win.
   A network that would take too long is stopped as soon as its first epochs show it.
4. *Repeats.* Small sets are dealt into folds several times, for candidates that are fitted in one go.

With enough time, what is found is a function of the data, the settings and the seed alone. Time ends a fit in a
process of its own between any two instructions, and one in this process after it or after an epoch.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.parallel.engine import TOO_LONG, Failure, Stop, never
from subgnn.training.fit import HELD_OUT
from subgnn.training.fits import Entry, FitJob, Fits, Fold, vectors_key

_REFIT = 1.3  # a fit to all subgraphs takes longer than one to four of five folds
_END_SECONDS, _END_SHARE = 8.0, 0.45  # kept for the choice, the scores and the page of a run


@dataclass(slots=True)
class Budget:
    """Seconds that a search may take, and what is left of them."""

    seconds: float
    begin: float = field(default_factory=lambda: time.monotonic())

    @property
    def left(self) -> float:
        return self.begin + self.seconds - time.monotonic()

    @property
    def end(self) -> float:
        """Seconds that the scores and the page of the run will take."""
        return min(_END_SECONDS, _END_SHARE * self.seconds)


@dataclass(slots=True, eq=False)
class Search:
    """Judges candidates; ``on_judged`` is called with each that is finished, ``on_change`` with what is being done.

    ``gain`` is what the predictions of a fold, for places among the judged subgraphs, gain over a constant guess.
    ``cannot_win`` says why a network is left out, ``behind`` why it is stopped after some folds; both may be empty.
    ``members`` are those of the answer that would be selected among the candidates that were judged.
    """

    fits: Fits
    entries: Sequence[Entry]
    num_folds: int
    budget: Budget
    gain: Callable[[NDArray[np.int64], NDArray[np.float32]], float]
    cannot_win: Callable[[Entry], str]
    behind: Callable[[NDArray[np.int64], NDArray[np.float32]], str]
    members: Callable[[], Sequence[Entry]]
    on_judged: Callable[[Entry], None]
    on_change: Callable[[str], None]
    interrupted: Stop = never
    _splits: dict[int, list[NDArray[np.int8]]] = field(default_factory=dict)

    def run(self) -> None:
        """Judge all candidates that there is time for; those that are judged already have their predictions."""
        self.fits.stop = lambda: self.interrupted() or self.budget.left < self.reserve()
        simple = [entry for entry in self._open() if entry.is_simple]
        networks = [entry for entry in self._open() if not entry.is_simple]
        self.on_change("work that candidates share")
        # On a GPU, the first network trains beside the others; whether it is left out is decided as if it came later.
        early = [entry for entry in networks[:1] if self.fits.device == "cuda" and not vectors_key(entry.recipe)]
        folds = range(len(self._of(0)))
        wanted = [(entry, 0, i) for i in folds for entry in simple if (0, i) not in entry.folds and not entry.dropped]
        self._fit_folds([*wanted, *((entry, 0, i) for entry in early for i in folds)], simple)
        self._fit_folds(self._plan([entry for entry in simple if (0, 0) in entry.folds and entry in self._open()]))
        for entry in networks:
            if not entry.dropped:
                self._judge_network(entry)
        judged = [entry for entry in simple if entry.predictions is not None]
        most = max((entry.repeats for entry in judged), default=1)
        for repeat in range(1, most):
            some = [entry for entry in judged if repeat < entry.repeats]
            self._fit_folds([(entry, repeat, fold) for entry in some for fold in range(len(self._of(repeat)))])
        for entry in self._open():
            entry.leave_out("interrupted" if self.interrupted() else "stopped: out of time")

    def reserve(self) -> float:
        """Seconds kept for the end of the run, and to fit the members of the answer again."""
        return self._reserve_for(*self.members())

    def _reserve_for(self, *entries: Entry) -> float:
        """Seconds kept if some candidates are the answer: at most half of all for their fits to all subgraphs."""
        return min(self.refit_seconds(entries), self.budget.seconds / 2) + self.budget.end

    def refit_seconds(self, entries: Sequence[Entry]) -> float:
        """Seconds of fits to all subgraphs, as many at once as possible."""
        pool, slots = self.fits.pool, self.fits.engine.slots
        size = len(pool.given.subgraphs) / max(1, len(pool.dataset.subgraphs))
        each = [_REFIT * size * entry.fit_seconds for entry in entries]
        # A sample's work that fits share is done again for all subgraphs; most of it once for all candidates.
        shared = max([size * self.fits.shared_seconds(entry) for entry in entries], default=0.0) if size > 1 else 0.0
        return max([sum(each) / slots, *each]) + shared / slots

    def _open(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.predictions is None and not entry.dropped]

    def _of(self, repeat: int) -> list[NDArray[np.int8]]:
        if repeat not in self._splits:
            self._splits[repeat] = self.fits.pool.folds(repeat, self.num_folds)
        return self._splits[repeat]

    def _missing(self, entry: Entry) -> list[int]:
        return [fold for fold in range(len(self._of(0))) if (0, fold) not in entry.folds]

    def _cost(self, entry: Entry) -> float:
        return len(self._missing(entry)) * entry.fit_seconds

    def _has_time(self, entries: Sequence[Entry]) -> bool:
        """Whether there is time for all folds of candidates, as far as their first folds tell, and to fit one again."""
        if not all((0, 0) in entry.folds or entry.dropped for entry in entries):
            return True
        left = self.budget.left - max([self.reserve(), *map(self._reserve_for, entries)])
        return sum(map(self._cost, entries)) <= left * self.fits.engine.slots

    def _plan(self, entries: Sequence[Entry]) -> list[tuple[Entry, int, int]]:
        """The missing folds of the first repeat for which there is time: the highest gain for the cost comes first."""
        used = 0.0
        cost = {entry.name: self._cost(entry) / self.fits.engine.slots for entry in entries}
        gains = {entry.name: self.gain(*self.predicted(entry, 1)) for entry in entries}
        planned: list[tuple[Entry, int, int]] = []
        for entry in sorted(entries, key=lambda entry: -gains[entry.name] / max(1e-3, cost[entry.name])):
            left = self.budget.left - max(self.reserve(), self._reserve_for(entry)) - used
            if cost[entry.name] <= left:
                used += cost[entry.name]
                planned += [(entry, 0, fold) for fold in self._missing(entry)]
            else:
                needs, has = cost[entry.name] + self.refit_seconds([entry]), self.budget.left - self.budget.end - used
                entry.leave_out(f"left out: needs about {needs:.0f} s more, and {max(0.0, has):.0f} s were left")
        return planned

    def _fit_folds(self, wanted: Sequence[tuple[Entry, int, int]], while_time: Sequence[Entry] = ()) -> None:
        """Fit candidates to folds; with ``while_time``, as long as there is time for all folds of these candidates."""
        by_name = {entry.name: entry for entry, _, _ in wanted}
        jobs = [self.fits.job(entry, self._of(r)[i], repeat=r, fold=i) for entry, r, i in wanted]
        # One that takes more than this could not be finished on all folds.
        longest = self.budget.seconds / 2
        for job, found in self.fits.fit(jobs, seconds=longest):
            self._receive(by_name[job.name], job, found)
            self._show()
            if not self._has_time(while_time):
                break

    def _receive(self, entry: Entry, job: FitJob, found: Fold | Failure) -> None:
        if isinstance(found, Failure):
            if found.message == TOO_LONG:
                entry.leave_out("stopped: one of its fits took too long")
            else:
                entry.dropped = f"failed: {found.message}"[:300]
            return
        if found.predictions is None:
            entry.leave_out(found.why)
            return
        entry.folds[job.repeat, job.fold] = found
        entry.seconds.append(found.seconds)
        if entry.is_simple:
            self._finish(entry, job.repeat)

    def _finish(self, entry: Entry, repeat: int = 0) -> None:
        """Put the predictions of all complete repeats together, if the last one is complete."""
        counts = {one: len(splits) for one, splits in self._splits.items()}
        complete = [one for one, count in counts.items() if all((one, i) in entry.folds for i in range(count))]
        if repeat not in complete:
            return
        found = np.stack([self.predicted(entry, counts[one], one)[1] for one in complete])
        if not np.isfinite(found).all():
            entry.dropped, entry.predictions = "failed: a prediction is not a finite number", None
            return
        entry.predictions = found
        self.on_judged(entry)

    def predicted(self, entry: Entry, count: int, repeat: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The judged subgraphs of the first folds, by their places, and what a candidate predicts for them."""
        splits = self._of(repeat)[:count]
        rows = np.concatenate([np.flatnonzero(one == HELD_OUT) for one in splits])
        found = np.concatenate([np.asarray(entry.folds[repeat, i].predictions) for i in range(len(splits))])
        places = np.searchsorted(self.fits.pool.judged, rows)
        order = np.argsort(places)
        return places[order], found[order]

    def _judge_network(self, entry: Entry) -> None:
        """Judge a network, unless it cannot win; after each fold, in their order, it may turn out to be behind."""
        entry.dropped = self.cannot_win(entry)
        if entry.dropped or self.fits.stop():
            return
        try:
            self.fits.prepare_vectors(entry)
        except Exception as error:
            if not self.fits.stop():
                entry.dropped = " ".join(f"failed: {error}".split())[:300]
            return
        if self.fits.stop():
            return
        splits = self._of(0)
        left = (self.budget.left - self.reserve()) * min(self.fits.engine.slots, len(splits))
        options: dict[str, Any] = {"repeat": 0, "seconds": left / (len(splits) + _REFIT)}
        checked = self._check(entry, 0)
        jobs = [self.fits.job(entry, splits[i], fold=i, **options) for i in self._missing(entry)]
        for job, found in self.fits.map(jobs):
            if entry.dropped:
                break
            self._receive(entry, job, found)
            checked = self._check(entry, checked)
            self._show()
        if not entry.dropped:
            self._finish(entry)

    def _check(self, entry: Entry, checked: int) -> int:
        """Compare a network after each of its folds, in their order; returns how many folds were looked at."""
        while (0, checked) in entry.folds and checked < len(self._of(0)) - 1 and not entry.dropped:
            checked += 1
            if why := self.behind(*self.predicted(entry, checked)):
                entry.dropped, entry.behind = f"stopped: {why}", True
        return checked

    def _show(self) -> None:
        self.on_change(", ".join(dict.fromkeys(map(str, self.fits.engine.running))))
