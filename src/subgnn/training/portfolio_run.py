"""Train a portfolio: judge the candidates, select the final answer, fit its members again, and score it on test."""

import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.config.settings import recipe_key
from subgnn.data.dataset import Dataset
from subgnn.data.splits import draw_folds
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import save_run_vectors
from subgnn.errors import DataError
from subgnn.metrics.coverage import HeldOutScores
from subgnn.metrics.thresholds import NONE, Decision
from subgnn.metrics.weighting import loss_weights
from subgnn.models.auto import mean_scores
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.interface import LoadContext
from subgnn.models.novelty import Novelty
from subgnn.models.recipes import find_recipe, portfolio
from subgnn.models.registry import baseline_of, open_checkpoint, trainable_model_of
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.parallel.engine import Failure
from subgnn.parallel.interrupts import Interrupt, noted_interrupt
from subgnn.result import Alerts, Candidate, LearningCurve, RunResult, Seconds
from subgnn.storage.files import json_digest
from subgnn.task import Standard, task_of
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.devices import make_fabric
from subgnn.training.ensemble_selection import Calibration, Choice, OutOfFold, calibrate, choose, clearly_behind
from subgnn.training.fit import HELD_OUT, FitResult, check_labels, score_fields
from subgnn.training.fits import Entry, Fits, Fold, open_fits, run_fit
from subgnn.training.label_signal import JudgedModel, Verdict, signal_of
from subgnn.training.options import RunOptions, TrainedRun
from subgnn.training.portfolio import CandidateScores, Job, learning_curve, load_candidate, plan, save_candidate
from subgnn.training.run_dir import CHECKPOINT, result_fields
from subgnn.training.search import Budget, Search

NEARLY_PERFECT = 0.01  # networks are skipped if a simple model has less than this share of a constant guess's error
_CONSTANT = "constant"
_SHOW_SECONDS = 0.5  # between two looks at the leaderboard


def train_portfolio(dataset: Dataset, options: RunOptions, pool: CrossValidation) -> TrainedRun:
    """Train a portfolio into a folder that belongs to the run.

    After Ctrl-C, the answer is selected among the candidates that are finished. The signals of a batch system and of a
    closed terminal, which leave no time for an answer, end the training at once; it can be resumed.
    """
    with (
        noted_interrupt([signal.SIGINT]) as interrupt,
        ThreadPoolExecutor(1) as beside,
        open_fits(pool, options, source=options.source) as fits,
    ):
        training = _Training(dataset, options, fits, interrupt)
        novelty = beside.submit(training.novelty)
        training.judge_all()
        judged_at = time.monotonic()
        answer = training.answer()
        training.report("fitting the members again")
        answer, members, curve = training.refit(answer)
        tables = {fit.checkpoint.spec.vectors_hash: fit.vectors for _, fit in members if fit.vectors is not None}
        save_run_vectors(tables.values(), pool.given.graph, options.out)
        checkpoint = training.checkpoint(answer, members, novelty.result())
        save_checkpoint(checkpoint, options.out / CHECKPOINT)
        result, outputs = training.result(answer, checkpoint, members)
        ended, begin = time.monotonic(), training.budget.begin
        seconds = {"train": ended - begin, "judge": judged_at - begin, "refit": ended - judged_at}
        result = replace(result, learning_curve=curve, seconds=replace(result.seconds, **seconds))
        result.save(options.out)
    out_of_fold = answer.calibrated(checkpoint.spec.standards.get("target"))
    rows = training.pool.rows[training.pool.judged]
    return TrainedRun(result, options.recipe, checkpoint, tables, outputs=outputs, out_of_fold=(out_of_fold, rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Ensemble:
    """The final ensemble: its members, their weights, the calibration and the thresholds."""

    rows: list[Entry]
    given: OutOfFold
    choice: Choice
    calibration: Calibration
    decision: Decision | None = None

    def calibrated(self, target: Standard | None = None) -> NDArray[np.float64]:
        """Calibrated out-of-fold outputs of all repeats (repeats, n, outputs)."""
        return self.calibration.apply(self.given.mixed(self.choice.weights), self.given.task, target)

    @property
    def members(self) -> list[tuple[Entry, float]]:
        """The candidates of weight above 0."""
        return [(row, float(w)) for row, w in zip(self.rows, self.choice.weights, strict=True) if w > 0]

    def only(self, names: Sequence[str]) -> Self:
        """The ensemble of some of its members, calibrated anew; the same if these are all of them."""
        kept = np.where([row.name in names for row in self.rows], self.choice.weights, 0.0)
        if not kept.any() or (kept == self.choice.weights).all():
            return self
        weights = kept / kept.sum()
        calibration = calibrate(self.given.mixed(weights), self.given.targets, self.given.task)
        return replace(self, choice=replace(self.choice, weights=weights), calibration=calibration)


class _Training:
    """A portfolio that is being trained."""

    def __init__(self, dataset: Dataset, options: RunOptions, fits: Fits, interrupt: Interrupt) -> None:
        self.dataset, self.options, self.fits, self.interrupt = dataset, options, fits, interrupt
        recipe, pool = options.recipe, fits.pool
        self.pool, self.budget = pool, Budget(recipe.auto.time)
        whole = replace(pool.given.subgraphs, splits=pool.whole())
        check_labels(whole)
        loss_weights(recipe.training, whole)
        self.scores = CandidateScores.by(recipe.training.select_by, pool)
        self.rows = plan(portfolio(recipe, dataset.graph.attributes), pool, recipe.auto)
        # All that out-of-fold predictions depend on.
        about = {"folds": recipe.auto.folds, "pool": pool.key}
        self._keys = {
            row.name: json_digest(about | {"recipe": recipe_key(row.recipe), "repeats": row.repeats})
            for row in self.rows
        }
        self.search = Search(
            fits,
            self.rows,
            recipe.auto.folds,
            self.budget,
            self._gain,
            self._cannot_win,
            self._behind,
            self._members,
            on_judged=lambda row: save_candidate(row, self._keys[row.name], pool.rows[pool.judged], options.out),
            on_change=self.report,
            interrupted=lambda: interrupt.pressed,
        )
        self._recipe = {one.name: one.recipe for one in recipe.auto.candidates}
        self._scored: dict[tuple[str, int], dict[str, float | None]] = {}
        self._chosen: dict[tuple[tuple[str, int], ...], Choice] = {}
        self._shown = 0.0

    @property
    def finished(self) -> list[Entry]:
        return [row for row in self.rows if row.predictions is not None]

    def judge_all(self) -> None:
        """Judge the candidates, or read what an earlier process has found."""
        for row in self.rows:
            if self.options.resume and not row.dropped:
                load_candidate(row, self._keys[row.name], self.options.out)
        self.report("")
        self.search.run()
        if self.finished:
            return
        if self.interrupt.pressed:
            raise KeyboardInterrupt
        if not any(row.late for row in self.rows):
            notes = "; ".join(f"{row.name}: {row.dropped}" for row in self.rows)
            hint = "name a recipe with --recipe"
            raise DataError(f"no candidate could be fitted ({notes})", where="train", hint=hint)
        self._judge_by_some()

    def _judge_by_some(self) -> None:
        """Without time for all folds, judge candidates by the subgraphs of the first; without any, guess a constant."""
        begun = [row for row in self.rows if (0, 0) in row.folds]
        if not begun:
            self.rows.insert(0, self._constant())
            return
        rows = self.search.predicted(begun[0], 1)[0]
        for row in begun:
            row.predictions, row.note, row.dropped = self.search.predicted(row, 1)[1][None], row.dropped, ""
        self.pool = replace(self.pool, judged=self.pool.judged[rows])
        self.scores = replace(self.scores, pool=self.pool)
        self._scored.clear()
        self._chosen.clear()

    def _frequencies(self) -> NDArray[np.float64]:
        """The frequencies of classes or labels, or the mean (outputs,)."""
        subgraphs = self.pool.subgraphs
        outputs = max(1, subgraphs.num_classes)
        indicators = task_of(subgraphs.task).indicators(np.asarray(subgraphs.targets), outputs)
        return np.asarray(indicators.mean(axis=0))

    def _constant(self) -> Entry:
        row, guess = Entry(_CONSTANT, find_recipe(_CONSTANT)), self._frequencies()
        row.predictions = np.broadcast_to(guess, (1, len(self.pool.judged), len(guess))).astype(np.float32)
        return row

    def _gain(self, places: NDArray[np.int64], predictions: NDArray[np.float32]) -> float:
        """The log-likelihood of predictions, a subgraph, above that of always guessing the frequencies of classes."""
        subgraphs = self.pool.subgraphs
        task, targets, guess = task_of(subgraphs.task), np.asarray(subgraphs.targets, np.float64), self._frequencies()
        even = np.broadcast_to(guess, (1, len(places), len(guess)))
        return task.log_loss(even, targets[places]) - task.log_loss(predictions[None].astype(float), targets[places])

    def _behind(self, places: NDArray[np.int64], predictions: NDArray[np.float32]) -> str:
        """Why a network is not fitted to the other folds, by what it predicts of some; empty if it may win."""
        if not self.finished:
            return ""
        why = clearly_behind(self._given(), places, predictions[None].astype(np.float64))
        return why and f"{why} (on {len(places)} subgraphs)"

    def _cannot_win(self, row: Entry) -> str:
        """Why a network is left out, by what the candidates before it have scored; empty if it may win."""
        judged = {one.name: self._score(one) for one in self.finished}
        if not judged or trainable_model_of(row.recipe).is_fitted_in_one_go:
            return ""
        best = max(judged, key=lambda name: cast(float, judged[name]["score"]))
        score, corrected = cast(float, judged[best]["score"]), row.recipe.model.baseline
        corrects = baseline_of(row.recipe) is not None and corrected in judged
        if corrects and cast(float, judged[corrected]["high"]) < cast(float, judged[best]["low"]):
            return f"left out: it corrects {corrected}, which is clearly behind {best}"
        if 1 - score < NEARLY_PERFECT * (1 - cast(float, self._score(None)["score"])):
            return f"left out: {best} already had {score:.3f}, and no network could measurably improve on it"
        for one in self.rows:
            if one.behind and self._recipe[one.name] == self._recipe[row.name]:
                return f"left out: {one.name}, by the same recipe, was stopped"
        return ""

    def _given(self, rows: Sequence[Entry] | None = None) -> OutOfFold:
        """The out-of-fold predictions of some candidates, by default of those that are finished."""
        found = [np.asarray(row.predictions) for row in rows or self.finished]
        repeats = np.arange(max(map(len, found)))
        # One with fewer repeats stands in with those it has.
        return self.scores.given(*(one[repeats % len(one)] for one in found))

    def _choice(self, rows: Sequence[Entry]) -> Choice:
        """The answer of some candidates, on out-of-fold predictions; computed once for each set of them."""
        key = tuple((row.name, len(np.asarray(row.predictions))) for row in rows)
        if key not in self._chosen:
            folds = draw_folds(self.pool.subgraphs, self.options.seed, "auto/choice", folds=5)
            self._chosen[key] = choose(self._given(rows), folds)
        return self._chosen[key]

    def _members(self, rows: Sequence[Entry] | None = None) -> list[Entry]:
        """The members of the answer of some candidates, by default of those that are finished."""
        rows = self.finished if rows is None else rows
        return [row for row, weight in zip(rows, self._choice(rows).weights, strict=True) if weight] if rows else []

    def _affordable(self) -> list[Entry]:
        """The finished candidates; of a sample, without members that there is no time to fit to all subgraphs."""
        rows, left, seconds = self.finished, self.budget.left - self.budget.end, self.search.refit_seconds
        while len(rows) > 1 and self.pool.dataset is not self.pool.given:
            members = self._members(rows)
            if seconds(members) <= left:
                break
            needs, slowest = max(((seconds([row]), row) for row in members), key=lambda pair: pair[0])
            slowest.late = True
            slowest.note = f"not used: its final fit needs about {needs:.0f} s, and {max(0.0, left):.0f} s were left"
            rows = [row for row in rows if row is not slowest]
        return rows

    def answer(self) -> _Ensemble:
        rows = self._affordable()
        given, subgraphs, choice = self._given(rows), self.pool.subgraphs, self._choice(rows)
        targets = given.targets
        answer = _Ensemble(rows, given, choice, calibrate(given.mixed(choice.weights), targets, subgraphs.task))
        aim = self.options.recipe.training.threshold
        if aim == NONE:
            return answer
        decision = Decision.choose(
            aim,
            task_of(subgraphs.task).scores(answer.calibrated()),
            targets,
            task=subgraphs.task,
            classes=subgraphs.classes,
            positive=task_of(subgraphs.task).positive(targets),
            chosen_on="out-of-fold",
        )
        return replace(answer, decision=decision)

    def refit(self, answer: _Ensemble) -> tuple[_Ensemble, list[tuple[Entry, FitResult]], LearningCurve | None]:
        """Fit the members to all subgraphs, as far as there is time, and to parts of them for a learning curve."""
        self.fits.stop = lambda: self.budget.left < self.budget.end / 2
        members = [row for row, _ in answer.members if row.recipe.method != _CONSTANT]
        found: dict[str, FitResult | Failure] = {}

        def fit_many(parts: Sequence[Job]) -> list[NDArray[np.float32] | None]:
            """Fit the members to all subgraphs, then candidates to parts, whose predictions are returned."""
            predicted: list[NDArray[np.float32] | None] = [None] * len(parts)
            jobs = [self.fits.job(row, self.pool.whole()) for row in members]
            jobs += [self.fits.job(row, splits, repeat=1, fold=i) for i, (row, splits) in enumerate(parts)]
            for job, result in self.fits.fit(jobs):
                if job.fold >= 0:
                    predicted[job.fold] = result.predictions if isinstance(result, Fold) else None
                elif isinstance(result, FitResult) and job.vectors:
                    found[job.name] = replace(result, vectors=np.load(job.vectors, mmap_mode="c"))
                else:
                    found[job.name] = result
            return predicted

        curve = None
        if self._has_time_for_curve(members):
            full, folds = answer.given.mixed(answer.choice.weights)[0], self.options.recipe.auto.folds
            curve = learning_curve(self.scores, answer.members, full=full, folds=folds, fit_many=fit_many)
        else:
            fit_many([])
        fitted = []
        for row in members:
            result = found.get(row.name) or self._first_fit(row)
            if isinstance(result, Failure):
                result.throw()
            if result is not None:
                fitted.append((row, result))
        if fitted:
            curve = None if any(row.late for row in members) else curve
            return answer.only([row.name for row, _ in fitted]), fitted, curve
        rows = [self._constant()]
        answer = replace(answer, rows=rows, given=self._given(rows), choice=Choice("best", np.ones(1), {}))
        return answer, [(rows[0], cast(FitResult, run_fit(self.fits.job(rows[0], self.pool.whole()))))], None

    def _has_time_for_curve(self, members: Sequence[Entry]) -> bool:
        """Whether a learning curve leaves twice the time that the final fits need; without these, it has no use."""
        if not members or any(row.late for row in members):
            return False
        seconds = [row.fit_seconds for row in members]
        needed = max(self.options.recipe.auto.folds * sum(seconds) / self.fits.engine.slots, *seconds)
        return needed + 2 * self.search.refit_seconds(members) <= self.budget.left - self.budget.end

    def _first_fit(self, row: Entry) -> FitResult | None:
        """The fit of a member to all folds but the first, which answers if there was no time for the final one."""
        row.late, found = True, self.fits.first_fit(row)
        if found is None:
            row.note = "no time for the final fit"
            return None
        count, sampled = len(self.pool.dataset.subgraphs), self.pool.dataset is not self.pool.given
        sample = f" of a sample of {count:,}" if sampled else ""
        row.note = f"fitted to all folds but one{sample}: no time for the final fit"
        tables = {} if found.vectors is None else {found.checkpoint.spec.vectors_hash: found.vectors}
        given, context = self.pool.given, LoadContext(torch.device("cpu"), tables=tables)
        test = given.subgraphs.nodes.take(given.subgraphs.indices("test"))
        outputs = open_checkpoint(found.checkpoint, given.graph, context).outputs(test)
        return replace(found, outputs={"test": outputs} if len(test) else {})

    def novelty(self) -> Novelty:
        """How far the subgraphs that the answer learns from are from each other."""
        rows = np.flatnonzero(self.pool.whole() < HELD_OUT)
        return Novelty.of(self.pool.given.graph, self.pool.given.subgraphs.nodes.take(rows), self.options.seed)

    def checkpoint(self, answer: _Ensemble, members: list[tuple[Entry, FitResult]], novelty: Novelty) -> Checkpoint:
        calibration = answer.calibration
        weights = {
            "member_weights": np.array([weight for _, weight in answer.members], np.float32),
            "scale": calibration.scale.astype(np.float32),
            "offset": calibration.offset.astype(np.float32),
        }
        if len(calibration.thresholds):
            weights["thresholds"] = calibration.thresholds.astype(np.float32)
        given, pool = self.pool.given, self.pool
        subgraphs = replace(given.subgraphs, splits=pool.whole())
        spec = ModelSpec.for_recipe(self.options.recipe, given.graph, subgraphs, seed=self.options.seed)
        scores = task_of(subgraphs.task).scores(answer.calibrated())
        spec = replace(
            spec,
            decision=answer.decision,
            held_out=HeldOutScores.of(scores, np.asarray(pool.subgraphs.targets), subgraphs.task),
            novelty=novelty,
        )
        return Checkpoint(spec, weights, {row.name: fit.checkpoint for row, fit in members})

    def leaderboard(
        self, answer: _Ensemble | None = None, tested: Mapping[str, float] | None = None
    ) -> tuple[Candidate, ...]:
        """The rows of the leaderboard, in the order of their scores; those without come last."""
        weights = {} if answer is None else {row.name: weight for row, weight in answer.members}
        constant = Candidate(
            name=_CONSTANT,
            recipe="",
            **self._score(None),
            seconds=0.0,
            weight=weights.get(_CONSTANT, 0.0),
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
                test=(tested or {}).get(row.name),
            )
            for row in self.rows
            if row.recipe.method != _CONSTANT
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

    def result(
        self, answer: _Ensemble, checkpoint: Checkpoint, members: list[tuple[Entry, FitResult]]
    ) -> tuple[RunResult, NDArray[np.float32] | None]:
        """The result, whose seconds are still without those of the whole, and outputs for test, which is scored here.

        Nothing else looks at test, and only the final answer is scored on it.
        """
        options, subgraphs, spec = self.options, self.pool.subgraphs, checkpoint.spec
        metric, target, task = self.scores.metric_name, spec.standards.get("target"), task_of(subgraphs.task)
        thresholds = answer.calibration.decision_thresholds
        if spec.decision is not None:
            thresholds = spec.decision.thresholds(spec.classes)
        calibrated, outputs = answer.calibrated(target), None
        scored: dict[str, tuple[NDArray[Any], SubgraphSet]] = {"val": (calibrated, subgraphs)}
        simple, counts, given = dict[str, float](), dict[str, list[Alerts]](), self.dataset.subgraphs
        if given.splits is not None and len(held_out := given.indices("test")):
            test = given.take(held_out)
            mixed = mean_scores([fit.predictions for _, fit in members], [weight for _, weight in answer.members])
            outputs = answer.calibration.apply(mixed, test.task, target).astype(np.float32)
            scored["test"] = outputs[None], test
            for row, fit in members:
                own = fit.checkpoint.spec.standards
                found = torch.from_numpy(fit.outputs["test"]), target_tensor(test, own)
                simple[row.name] = task.metrics(*found, unit=label_unit(own), select_by=metric)[metric]
            if spec.decision is not None:
                counts["test"] = spec.decision.counts(task.scores(outputs), np.asarray(test.targets), spec.classes)
        fields, targets = score_fields(scored, spec, thresholds, metric), target_tensor(subgraphs, spec.standards)
        losses = [float(task.loss(torch.from_numpy(one.astype(np.float32)), targets)) for one in calibrated]
        fields["val"] = {"loss": float(np.mean(losses)), **fields["val"]}
        verdict, seconds = self._verdict(), [seconds for row in self.finished for seconds in row.seconds]
        result = RunResult(
            **result_fields(options, self.dataset, make_fabric(options.device).device),
            **fields,
            selected_epoch=0,
            epochs=1,
            metric=metric,
            select_by="auto" if options.recipe.training.select_by == "auto" else metric,
            threshold=None if spec.decision is None else spec.decision.report(**counts),
            chosen=answer.choice.rule,
            rules=answer.choice.scores,
            leaderboard=self.leaderboard(answer, simple),
            signal=" ".join(verdict.sentences),
            signals=verdict.signals,
            interrupted=self.interrupt.pressed,
            late=tuple(row.name for row in self.rows if row.late),
            judged=len(subgraphs) if len(subgraphs) < (self.pool.whole() < HELD_OUT).sum() - len(self.pool.val) else 0,
            seconds=Seconds(pretrain=0.0, prepare=0.0, train=0.0, epoch_median=median(seconds or [0.0])),
        )
        return result, outputs

    def _verdict(self) -> Verdict:
        """What the out-of-fold predictions say of the labels."""
        if all(row.recipe.method == _CONSTANT for row in self.finished):
            return Verdict((), "", ("There was no time to try a model, so nothing is known about the labels.",))
        models = [trainable_model_of(row.recipe) for row in self.finished]
        judged = [
            JudgedModel(row.name, model.sees(row.recipe), simple=model.is_fitted_in_one_go)
            for row, model in zip(self.finished, models, strict=True)
        ]
        untried = [row.name for row in self.rows if row.predictions is None and not row.behind]
        return signal_of(judged, self._given(), untried)
