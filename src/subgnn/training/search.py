"""Judge the candidates of a portfolio by cross-validation, on all cores and within a time limit, and select its answer.

A job is one fit: of one candidate, to all folds but one. Jobs are independent, so they run in any order, in processes
of this machine or on a Ray cluster, and the result is the same: each fit uses one thread, and decisions about a
candidate depend on the predictions of others, never on the time at which they arrive.

1. *First folds.* Every candidate that is fitted in one go predicts the first fold. That measures its cost, and what it
   gains over always predicting the most frequent class.
2. *Other folds.* If there is time for all, all are fitted. If not, those of the highest gain for their cost come first,
   and candidates that would not be finished are left out. If the answer of the others is clearly behind one of these
   on the first fold, all are judged by that fold alone.
3. *Networks*, one after the other, as what the candidates before have scored decides whether a network may still win.
   A network that would take too long is stopped as soon as its first epochs show it.
4. *Repeats.* Small sets are dealt into folds several times, for candidates that are fitted in one go.

With enough time, what is found is a function of the data, the settings and the seed alone. Time ends a fit in a
process of its own between any two instructions, and one in this process after it or after an epoch.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subgnn.config.settings import recipe_key
from subgnn.data.dataset import Dataset
from subgnn.data.splits import draw_folds
from subgnn.errors import DataError
from subgnn.metrics.weighting import loss_weights
from subgnn.models.recipes import find_recipe, portfolio
from subgnn.models.registry import baseline_of
from subgnn.parallel.engine import TOO_LONG, Failure
from subgnn.parallel.interrupts import Interrupt
from subgnn.result import Candidate
from subgnn.storage.files import json_digest
from subgnn.task import task_of
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.ensemble_selection import BEHIND, Choice, OutOfFold, chance_of_lead, choose, clearly_behind
from subgnn.training.fit import HELD_OUT, check_labels
from subgnn.training.fits import Entry, FitJob, Fits, Fold, vectors_key
from subgnn.training.options import RunOptions
from subgnn.training.portfolio import CandidateScores, load_candidate, plan, save_candidate

_REFIT = 1.3  # a fit to all subgraphs takes longer than one to four of five folds
_MARGIN = 1.25  # kept for final fits beyond what they should take
NEARLY_PERFECT = 0.01  # networks are skipped if a simple model has less than this share of a constant guess's error
_NO_TIME = "no time for its other folds"
CONSTANT = "constant"
"""The recipe of the guess that ignores the subgraph, and its name among the candidates."""
_SHOW_SECONDS = 0.5  # between two looks at the leaderboard
_END_SECONDS, _END_SHARE = 8.0, 0.45  # kept for the choice, the scores and the page of a run
_CHEAP = 0.05  # of the time limit: a candidate whose fits take less is fitted to all folds before walks are computed


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


class Search:
    """Judges the candidates of a portfolio, and selects its answer among those that are judged."""

    def __init__(self, dataset: Dataset, options: RunOptions, fits: Fits, interrupt: Interrupt) -> None:
        recipe, pool = options.recipe, fits.pool
        self.options, self.fits, self.interrupt, self.budget = options, fits, interrupt, Budget(recipe.auto.time)
        whole = replace(pool.given.subgraphs, splits=pool.whole())
        check_labels(whole)
        loss_weights(recipe.training, whole)
        self.scores = CandidateScores.by(recipe.training.select_by, pool)
        self.entries = plan(portfolio(recipe, dataset.graph.attributes), pool, recipe.auto)
        # All that out-of-fold predictions depend on.
        about = {"folds": recipe.auto.folds, "pool": pool.key}
        self._keys = {
            entry.name: json_digest(about | {"recipe": recipe_key(entry.recipe), "repeats": entry.repeats})
            for entry in self.entries
        }
        self._recipe = {one.name: one.recipe for one in recipe.auto.candidates}
        self._splits: dict[int, list[NDArray[np.int8]]] = {}
        self._scored: dict[tuple[str, int], dict[str, float | None]] = {}
        self._chosen: dict[tuple[tuple[str, int], ...], Choice] = {}
        self._shown = 0.0

    @property
    def pool(self) -> CrossValidation:
        """The subgraphs that candidates are compared on: fewer than ``fits.pool`` if there was no time for all."""
        return self.scores.pool

    @property
    def finished(self) -> list[Entry]:
        return [row for row in self.entries if row.predictions is not None]

    def judge(self) -> None:
        """Judge the candidates, or read what an earlier process has found."""
        for row in self.entries:
            if self.options.resume and not row.dropped:
                load_candidate(row, self._keys[row.name], self.options.out)
        self.report("")
        self.run()
        if self.finished:
            if self._is_behind_on_the_first_fold():
                self._judge_by_first_fold()
            return
        if self.interrupt.pressed and not self._begun():
            raise KeyboardInterrupt
        if not any(row.late for row in self.entries):
            notes = "; ".join(f"{row.name}: {row.dropped}" for row in self.entries)
            hint = "name a recipe with --recipe"
            raise DataError(f"no candidate could be fitted ({notes})", where="train", hint=hint)
        if self._begun():
            self._judge_by_first_fold()
        else:
            self.entries.insert(0, self.constant())

    def _begun(self) -> list[Entry]:
        """The candidates that there was no time for after their first fold."""
        return [row for row in self.entries if row.predictions is None and row.late and (0, 0) in row.folds]

    def _is_behind_on_the_first_fold(self) -> bool:
        """Whether the answer of the finished candidates is clearly behind one that was not finished."""
        if not (begun := self._begun()):
            return False
        given = self.given().take(self.predicted(begun[0], 1)[0])
        ours = given.mixed(self.choice(self.finished).weights)
        others = [self.predicted(row, 1)[1][None].astype(np.float64).repeat(len(ours), axis=0) for row in begun]
        top = max(others, key=given.score)
        return given.score(top) > given.score(ours) and chance_of_lead(given, top, ours) < BEHIND

    def _judge_by_first_fold(self) -> None:
        """Judge all candidates by the subgraphs of the first fold, without time for the other folds of some."""
        begun, finished = self._begun(), self.finished
        rows = self.predicted(begun[0], 1)[0]
        for row in finished:
            row.predictions = np.asarray(row.predictions)[:, rows]
        for row in begun:
            row.predictions = self.predicted(row, 1)[1][None]
            row.note, row.dropped = row.dropped.replace(_NO_TIME, "judged by its first fold"), ""
        self.scores = replace(self.scores, pool=replace(self.pool, judged=self.pool.judged[rows]))
        self._scored.clear()
        self._chosen.clear()

    def run(self) -> None:
        """Judge all candidates that there is time for; those that are judged already have their predictions."""
        self.fits.stop = lambda: self.interrupt.pressed or self.budget.left < self.reserve()
        simple = [entry for entry in self._open() if entry.is_simple]
        networks = [entry for entry in self._open() if not entry.is_simple]
        self.report("work that candidates share")
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
        for repeat in range(1, max((entry.repeats for entry in judged), default=1)):
            some = [entry for entry in judged if repeat < entry.repeats]
            self._fit_folds([(entry, repeat, fold) for entry in some for fold in range(len(self._of(repeat)))])
        for entry in self._open():
            why = _NO_TIME if (0, 0) in entry.folds else "no time for it"
            entry.leave_out("interrupted" if self.interrupt.pressed else why)

    def reserve(self) -> float:
        """Seconds kept for the end of the run, and to fit the members of the answer again."""
        return self._reserve_for(*self.members())

    def _reserve_for(self, *entries: Entry) -> float:
        """Seconds kept if some candidates are the answer: at most half of all for their fits to all subgraphs."""
        return min(_MARGIN * self.refit_seconds(entries), self.budget.seconds / 2) + self.budget.end

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
            self._splits[repeat] = self.fits.pool.folds(repeat, self.options.recipe.auto.folds)
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
        gains = {entry.name: self._gain(*self.predicted(entry, 1)) for entry in entries}
        planned: list[tuple[Entry, int, int]] = []
        for entry in sorted(entries, key=lambda entry: -gains[entry.name] / max(1e-3, cost[entry.name])):
            left = self.budget.left - max(self.reserve(), self._reserve_for(entry)) - used
            if cost[entry.name] <= left:
                used += cost[entry.name]
                planned += [(entry, 0, fold) for fold in self._missing(entry)]
            else:
                entry.leave_out(_NO_TIME)
        return planned

    def _fit_folds(self, wanted: Sequence[tuple[Entry, int, int]], while_time: Sequence[Entry] = ()) -> None:
        """Fit candidates to folds; with ``while_time``, as long as there is time for all folds of these candidates."""
        by_name = {entry.name: entry for entry, _, _ in wanted}
        jobs = [self.fits.job(entry, self._of(r)[i], repeat=r, fold=i) for entry, r, i in wanted]
        # One that takes more than half of the time could not be finished on all folds.
        for job, found in self.fits.fit(jobs, seconds=self.budget.seconds / 2, cheap=self.budget.seconds * _CHEAP):
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
        pool = self.fits.pool
        save_candidate(entry, self._keys[entry.name], pool.rows[pool.judged], self.options.out)

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
        entry.dropped = self._cannot_win(entry)
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
        """Stop a network that is behind after some of its folds, in their order; returns how many were looked at."""
        while (0, checked) in entry.folds and checked < len(self._of(0)) - 1 and not entry.dropped:
            checked += 1
            places, predictions = self.predicted(entry, checked)
            if self.finished and (why := clearly_behind(self.given(), places, predictions[None].astype(np.float64))):
                entry.dropped, entry.behind = f"stopped: {why} (on {len(places)} subgraphs)", True
        return checked

    def _show(self) -> None:
        self.report(", ".join(dict.fromkeys(map(str, self.fits.engine.running))))

    def _frequencies(self) -> NDArray[np.float64]:
        """The frequencies of classes or labels, or the mean (outputs,)."""
        subgraphs = self.pool.subgraphs
        targets, outputs = np.asarray(subgraphs.targets), max(1, subgraphs.num_classes)
        return np.asarray(task_of(subgraphs.task).indicators(targets, outputs).mean(axis=0))

    def constant(self) -> Entry:
        row, guess = Entry(CONSTANT, find_recipe(CONSTANT)), self._frequencies()
        row.predictions = np.broadcast_to(guess, (1, len(self.pool.judged), len(guess))).astype(np.float32)
        return row

    def _gain(self, places: NDArray[np.int64], predictions: NDArray[np.float32]) -> float:
        """The log-likelihood of predictions, a subgraph, above that of always guessing the frequencies of classes."""
        subgraphs = self.pool.subgraphs
        task, targets, guess = task_of(subgraphs.task), np.asarray(subgraphs.targets, np.float64), self._frequencies()
        even = np.broadcast_to(guess, (1, len(places), len(guess)))
        return task.log_loss(even, targets[places]) - task.log_loss(predictions[None].astype(float), targets[places])

    def _cannot_win(self, row: Entry) -> str:
        """Why a network is left out, by what the candidates before it have scored; empty if it may win."""
        judged = {one.name: self._score(one) for one in self.finished}
        if not judged or row.is_simple:
            return ""
        best = max(judged, key=lambda name: cast(float, judged[name]["score"]))
        score, corrected = cast(float, judged[best]["score"]), row.recipe.model.baseline
        corrects = baseline_of(row.recipe) is not None and corrected in judged
        low = judged[best]["low"]  # None where no score is defined
        if corrects and low is not None and cast(float, judged[corrected]["high"]) < low:
            return f"left out: it corrects {corrected}, which is clearly behind {best}"
        if 1 - score < NEARLY_PERFECT * (1 - cast(float, self._score(None)["score"])):
            return f"left out: {best} had {score:.3f} in the first division into folds; networks can hardly do better"
        for one in self.entries:
            if one.behind and self._recipe[one.name] == self._recipe[row.name]:
                return f"left out: {one.name}, by the same recipe, was stopped"
        return ""

    def given(self, rows: Sequence[Entry] | None = None) -> OutOfFold:
        """The out-of-fold predictions of some candidates, by default of those that are finished."""
        found = [np.asarray(row.predictions) for row in rows or self.finished]
        repeats = np.arange(max(map(len, found)))
        # One with fewer repeats stands in with those it has.
        return self.scores.given(*(one[repeats % len(one)] for one in found))

    def choice(self, rows: Sequence[Entry]) -> Choice:
        """The answer of some candidates, on out-of-fold predictions; computed once for each set of them."""
        key = tuple((row.name, len(np.asarray(row.predictions))) for row in rows)
        if key not in self._chosen:
            folds = draw_folds(self.pool.subgraphs, self.options.seed, "auto/choice", folds=5)
            self._chosen[key] = choose(self.given(rows), folds)
        return self._chosen[key]

    def score(self, rows: Sequence[Entry]) -> float:
        """The score of the answer of some candidates on their out-of-fold predictions."""
        given = self.given(rows)
        return given.score(given.mixed(self.choice(rows).weights))

    def members(self, rows: Sequence[Entry] | None = None) -> list[Entry]:
        """The members of the answer of some candidates, by default of those that are finished."""
        rows = self.finished if rows is None else rows
        return [row for row, weight in zip(rows, self.choice(rows).weights, strict=True) if weight] if rows else []

    def leaderboard(
        self, weights: Mapping[str, float] | None = None, tested: Mapping[str, float] | None = None
    ) -> tuple[Candidate, ...]:
        """The rows of the leaderboard, in the order of their scores; those without come last."""
        weights, tested = weights or {}, tested or {}
        constant = Candidate(
            name=CONSTANT,
            recipe="",
            **self._score(None),
            seconds=0.0,
            weight=weights.get(CONSTANT, 0.0),
            note="ignores the subgraph",
        )
        rows = [
            Candidate(
                name=row.name,
                recipe=self._recipe[row.name],
                **self._score(row),
                seconds=sum(row.seconds),
                weight=weights.get(row.name, 0.0),
                note=row.dropped or row.note,
                test=tested.get(row.name),
            )
            for row in self.entries
            if row.recipe.method != CONSTANT
        ]
        rows.insert(0, constant)
        return tuple(sorted(rows, key=lambda row: -np.inf if row.score is None else row.score, reverse=True))

    def report(self, doing: str) -> None:
        """Show the leaderboard so far, but not all the time."""
        if not doing or time.monotonic() > self._shown + _SHOW_SECONDS:
            self.options.callbacks.on_leaderboard(self.leaderboard(), doing)
            self._shown = time.monotonic()

    def _score(self, row: Entry | None) -> dict[str, float | None]:
        """The score of a candidate with its interval, computed once for each of its repeats; None is the constant."""
        key = ("", 0) if row is None else (row.name, 0 if row.predictions is None else len(row.predictions))
        if key not in self._scored:
            self._scored[key] = self.scores.constant() if row is None else self.scores.of(row.predictions)
        return self._scored[key]
