"""Train a portfolio: judge the candidates, select the final answer, fit its members again, and score it on test."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.splits import draw_folds
from subgnn.embeddings.sources import Tables, save_run_vectors
from subgnn.errors import DataError, UserError
from subgnn.metrics.coverage import HeldOutScores
from subgnn.metrics.significance import headline_interval
from subgnn.metrics.thresholds import NONE, Decision
from subgnn.metrics.weighting import Weighting
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.examples import target_tensor
from subgnn.models.interface import LoadContext
from subgnn.models.novelty import Novelty
from subgnn.models.recipes import portfolio
from subgnn.models.registry import baseline_of, open_checkpoint, trainable_model_of
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.parallel.interrupts import Interrupt, noted_interrupt
from subgnn.result import Alerts, Candidate, Interval, RunResult, Seconds
from subgnn.task import task_of
from subgnn.training.devices import make_fabric
from subgnn.training.ensemble_selection import Calibration, Choice, OutOfFold, calibrate, choose, clearly_behind
from subgnn.training.fit import FitResult, Stopped, check_labels
from subgnn.training.label_signal import CandidateScore, signal_of
from subgnn.training.options import RunOptions, TrainedRun
from subgnn.training.portfolio import (
    Budget,
    CandidateScores,
    Check,
    CrossValidation,
    Dropped,
    Entry,
    FoldFits,
    candidate_key,
    judge,
    load_candidate,
    output_metrics,
    over_budget,
    plan,
    save_candidate,
)
from subgnn.training.run_dir import CHECKPOINT, result_fields

_OVER_BUDGET = "it would not fit into the budget"
NEARLY_PERFECT = 0.01  # networks are skipped if a simple model has less than this share of a constant guess's error
_REFITS = 1.3  # a fit to all subgraphs takes longer than one to four of five folds


def train_portfolio(dataset: Dataset, options: RunOptions) -> RunResult:
    """Train a portfolio into a folder that belongs to the run.

    After Ctrl-C, the answer is selected among the candidates that are finished. The signals of a batch system and of a
    closed terminal, which leave no time for an answer, end the training at once; it can be resumed.
    """
    begin = time.monotonic()
    training = _Training.of(dataset, options)
    with noted_interrupt([signal.SIGINT]) as interrupt:
        training.judge_all(interrupt)
        judged_at = time.monotonic()
        answer = training.answer()
        training.report("fitting the members again")
        checkpoint, fits = training.refit(answer)
        save_run_vectors(
            [(fit.vectors, row.recipe) for row, fit in fits if fit.vectors is not None],
            training.fits.graph,
            options.out,
        )
        save_checkpoint(checkpoint, options.out / CHECKPOINT)
        training.report("scoring on test")
        tested = training.test(checkpoint, fits)
        result = training.result(answer, checkpoint, tested, interrupted=interrupt.pressed)
        ended = time.monotonic()
        seconds = {"train": ended - begin, "judge": judged_at - begin, "refit": ended - judged_at}
        result = replace(result, seconds=replace(result.seconds, **seconds))
        result.save(options.out)
    if options.write_page is not None:
        trained = TrainedRun(
            result,
            options.recipe,
            checkpoint,
            tables=_tables(fits),
            outputs=tested.outputs,
            out_of_fold=(np.stack(training.outputs(answer, checkpoint.spec)), training.pool.rows[training.pool.judged]),
        )
        options.write_page(dataset, options.out, trained)
    return result


def _tables(fits: list[tuple[Entry, FitResult]]) -> Tables:
    """The node embeddings that members started from, by their hash."""
    return {fit.checkpoint.spec.vectors_hash: fit.vectors for _, fit in fits if fit.vectors is not None}


@dataclass(frozen=True, slots=True, eq=False)
class _TestScores:
    """Test scores of the final ensemble, and of simple candidates by the leaderboard's metric; empty without test."""

    outputs: NDArray[np.float32] | None = None
    scores: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    counts: dict[str, list[Alerts]] = field(default_factory=dict)
    simple: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Ensemble:
    """The final ensemble: its members, their weights, the calibration and the thresholds."""

    rows: list[Entry]
    given: OutOfFold
    choice: Choice
    calibration: Calibration
    decision: Decision | None = None

    @property
    def calibrated(self) -> NDArray[np.float64]:
        """Calibrated out-of-fold outputs of all repeats (repeats, n, outputs)."""
        return self.calibration.apply(self.given.mixed(self.choice.weights), self.given.task)

    @property
    def members(self) -> list[tuple[Entry, float]]:
        """The candidates of weight above 0."""
        return [(row, float(w)) for row, w in zip(self.rows, self.choice.weights, strict=True) if w > 0]


@dataclass(slots=True, eq=False)
class _Training:
    """A portfolio that is being trained."""

    dataset: Dataset
    options: RunOptions
    pool: CrossValidation
    rows: list[Entry]
    fits: FoldFits
    budget: Budget
    scores: CandidateScores

    @classmethod
    def of(cls, dataset: Dataset, options: RunOptions) -> _Training:
        recipe = options.recipe
        budget = Budget(recipe.auto.time)
        pool = CrossValidation.of(dataset, recipe.auto, options.seed)
        whole = replace(pool.dataset.subgraphs, splits=pool.whole())
        check_labels(whole)
        Weighting.of(recipe.training, whole)
        scores = CandidateScores.by(recipe.training.select_by, pool)
        rows = plan(portfolio(recipe, dataset.graph.attributes), pool, recipe.auto)
        fits = FoldFits(pool, options.device, options.cache, options.callbacks)
        return cls(dataset, options, pool, rows, fits, budget, scores)

    @property
    def _recipe(self) -> dict[str, str]:
        """The name of each candidate's recipe."""
        return {one.name: one.recipe for one in self.options.recipe.auto.candidates}

    @property
    def finished(self) -> list[Entry]:
        """The candidates that were judged, in their order."""
        return [row for row in self.rows if row.predictions is not None]

    def judge_all(self, interrupt: Interrupt) -> None:
        """Judge the candidates that are planned, or read what an earlier process has found."""
        pool_key, auto, out = self.pool.key, self.options.recipe.auto, self.options.out
        # The first candidate is finished whatever the time, so that there is an answer.
        self.fits.stop = lambda: interrupt.pressed or (bool(self.finished) and self.budget.left < self._reserve())
        self.report("plan")
        for row in self.rows:
            key = candidate_key(row, pool_key, auto)
            if row.dropped or (self.options.resume and load_candidate(row, key, out)):
                continue
            row.dropped = self._cannot_win(row) or self._too_late(row)
            if row.dropped:
                continue
            self.report(row.name)
            try:
                judge(row, auto, self.fits, self._check(row, interrupt))
                save_candidate(row, key, self.pool.rows[self.pool.judged], out)
            except (Stopped, Dropped) as reason:
                row.dropped = "interrupted" if interrupt.pressed else f"stopped: {str(reason) or _OVER_BUDGET}"
            except Exception as error:
                text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                row.dropped = " ".join(f"failed: {text}".split())[:300]
            if interrupt.pressed:
                break
        for row in self.rows:
            if interrupt.pressed and row.predictions is None and not row.dropped:
                row.dropped = "interrupted"
        if not self.finished:
            if interrupt.pressed:
                raise KeyboardInterrupt
            notes = "; ".join(f"{row.name}: {row.dropped}" for row in self.rows)
            raise DataError(
                f"no candidate could be fitted ({notes})", where="train", hint="name a recipe with --recipe"
            )
        self.fits.stop = lambda: False

    def _cannot_win(self, row: Entry) -> str:
        """Why a network is left out, by what the candidates before it have scored; empty if it may win."""
        judged = {one.name: self.scores.of(one) for one in self.finished}
        if not judged or trainable_model_of(row.recipe).is_fitted_in_one_go:
            return ""
        best = max(judged, key=lambda name: cast(float, judged[name]["score"]))
        score, corrected = cast(float, judged[best]["score"]), row.recipe.model.baseline
        corrects = baseline_of(row.recipe) is not None and corrected in judged
        if corrects and cast(float, judged[corrected]["high"]) < cast(float, judged[best]["low"]):
            return f"left out: it corrects {corrected}, which is clearly behind {best}"
        if 1 - score < NEARLY_PERFECT * (1 - cast(float, self.scores.constant()["score"])):
            return f"left out: {best} has {score:.3f}, and no network could measurably improve on it"
        for one in self.rows:
            if one.behind and self._recipe[one.name] == self._recipe[row.name]:
                return f"left out: {one.name}, by the same recipe, was stopped"
        return ""

    def _too_late(self, row: Entry) -> str:
        """Why a planned candidate no longer fits into the budget; empty if it still does."""
        seconds, left = row.estimate(self.options.recipe.auto.folds), self.budget.left - self._reserve()
        return over_budget(seconds, left) if self.finished and seconds > left else ""

    def _reserve(self) -> float:
        """Seconds needed to refit the members once they are chosen."""
        return _REFITS * sum(row.refit for row in self.finished)

    def _check(self, row: Entry, interrupt: Interrupt) -> Check:
        first, trained = not self.finished, not trainable_model_of(row.recipe).is_fitted_in_one_go

        def check(rest: float, rows: NDArray[np.int64], predictions: NDArray[np.float32]) -> None:
            if interrupt.pressed:
                raise Stopped
            if first:
                return
            if trained and (why := clearly_behind(self._given(), rows, predictions.astype(np.float64))):
                row.behind = True
                raise Dropped(f"{why} (on {len(rows)} subgraphs)")
            if rest + self._reserve() + _REFITS * row.cost.fit > self.budget.left:
                raise Dropped(_OVER_BUDGET)

        return check

    def _given(self) -> OutOfFold:
        """The out-of-fold predictions of the candidates that are finished."""
        rows, subgraphs = self.finished, self.pool.subgraphs
        repeats = max(row.repeats for row in rows)
        # A candidate with fewer repeats stands in with those it has.
        cycled = [np.asarray(row.predictions)[np.arange(repeats) % row.repeats] for row in rows]
        targets = np.asarray(subgraphs.targets, np.float64)
        stacked = np.stack(cycled).astype(np.float64)
        return OutOfFold(stacked, targets, subgraphs.task, self.pool.units, self.scores.metric)

    def answer(self) -> _Ensemble:
        """Select the answer on out-of-fold predictions, and calibrate it."""
        rows, given, subgraphs = self.finished, self._given(), self.pool.subgraphs
        targets = given.targets
        choice = choose(given, draw_folds(subgraphs, self.options.seed, "auto/choice", folds=5))
        answer = _Ensemble(rows, given, choice, calibrate(given.mixed(choice.weights), targets, subgraphs.task))
        aim = self.options.recipe.training.threshold
        if aim == NONE:
            return answer
        decision = Decision.choose(
            aim,
            task_of(subgraphs.task).scores(answer.calibrated),
            targets,
            task=subgraphs.task,
            classes=subgraphs.classes,
            positive=task_of(subgraphs.task).positive(targets),
            chosen_on="out-of-fold",
        )
        return replace(answer, decision=decision)

    def refit(self, answer: _Ensemble) -> tuple[Checkpoint, list[tuple[Entry, FitResult]]]:
        """Fit the members to all subgraphs of the pool."""
        members, pool = answer.members, self.pool
        fits = [(row, self._fit(row)) for row, _ in members]
        calibration = answer.calibration
        weights = {
            "member_weights": torch.tensor([weight for _, weight in members], dtype=torch.float32),
            "scale": torch.from_numpy(calibration.scale.astype(np.float32)),
            "offset": torch.from_numpy(calibration.offset.astype(np.float32)),
        }
        if len(calibration.thresholds):
            weights["thresholds"] = torch.from_numpy(calibration.thresholds.astype(np.float32))
        subgraphs = replace(pool.subgraphs, splits=np.zeros(len(pool.judged), np.int8))
        spec = ModelSpec.for_recipe(self.options.recipe, self.fits.graph, subgraphs, seed=self.options.seed)
        spec = replace(
            spec,
            decision=answer.decision,
            held_out=HeldOutScores.of(
                task_of(subgraphs.task).scores(answer.calibrated), np.asarray(subgraphs.targets), subgraphs.task
            ),
            novelty=Novelty.of(self.fits.graph, pool.dataset.subgraphs.nodes, self.options.seed),
        )
        return Checkpoint(spec, weights, {row.name: fit.checkpoint for row, fit in fits}), fits

    def _fit(self, row: Entry) -> FitResult:
        return self.fits.fit(row.recipe, self.pool.whole())

    def leaderboard(
        self, answer: _Ensemble | None = None, tested: Mapping[str, float] | None = None
    ) -> tuple[Candidate, ...]:
        """The rows of the leaderboard, in the order of their scores; those without come last."""
        weights = {} if answer is None else {row.name: weight for row, weight in answer.members}
        constant = Candidate(
            name="constant",
            recipe="",
            **self.scores.constant(),
            seconds=0.0,
            estimate=0.0,
            weight=0.0,
            note="ignores the subgraph",
        )
        rows = [
            Candidate(
                name=row.name,
                recipe=self._recipe[row.name],
                **self.scores.of(row),
                seconds=sum(row.seconds),
                estimate=row.estimate(self.options.recipe.auto.folds),
                weight=weights.get(row.name, 0.0),
                note=row.dropped or row.note,
                test=(tested or {}).get(row.name),
            )
            for row in self.rows
        ]
        return tuple(
            sorted([constant, *rows], key=lambda row: -np.inf if row.score is None else row.score, reverse=True)
        )

    def report(self, doing: str) -> None:
        """Show the leaderboard so far."""
        self.options.callbacks.on_leaderboard(self.leaderboard(), doing)

    def outputs(self, answer: _Ensemble, spec: ModelSpec) -> list[NDArray[np.float64]]:
        """Calibrated out-of-fold outputs of each repeat (n, outputs)."""
        task, calibration = self.pool.subgraphs.task, answer.calibration
        mixed = answer.given.mixed(answer.choice.weights)
        return [calibration.apply(one, task, spec.standards.get("target")) for one in mixed]

    def result(self, answer: _Ensemble, checkpoint: Checkpoint, tested: _TestScores, *, interrupted: bool) -> RunResult:
        """The result; its seconds are still without those of the whole."""
        options, subgraphs, spec = self.options, self.pool.subgraphs, checkpoint.spec
        task, recipe, metric = subgraphs.task, options.recipe, self.scores.metric_name
        calibrated = self.outputs(answer, spec)
        thresholds = answer.calibration.decision_thresholds
        if spec.decision is not None:
            thresholds = spec.decision.thresholds(spec.classes)
        options_of: dict[str, Any] = {"with_loss": True, "select_by": metric}
        val = [output_metrics(outputs, subgraphs, spec, thresholds, **options_of) for outputs in calibrated]
        targets, repeats = target_tensor(subgraphs, spec.standards), [torch.from_numpy(one) for one in calibrated]
        judged = [
            CandidateScore(row.name, model.sees(row.recipe), terms, simple=model.is_fitted_in_one_go)
            for row, model in ((row, trainable_model_of(row.recipe)) for row in self.rows)
            if (terms := self.scores.terms(row))
        ]
        untried = [row.name for row in self.rows if row.predictions is None and not row.behind]
        verdict = signal_of(judged, np.asarray(subgraphs.targets), task, self.pool.units, untried)
        fit_seconds = [seconds for row in self.finished for seconds in row.seconds]
        of_folds = headline_interval(repeats, targets, subgraphs, thresholds=thresholds)
        return RunResult(
            **result_fields(options, self.dataset, make_fabric(options.device).device),
            selected_epoch=0,
            epochs=1,
            val={name: float(np.mean([one[name] for one in val])) for name in val[0]},
            test=tested.scores,
            intervals={"val": of_folds, **tested.intervals},
            metric=metric,
            select_by="auto" if recipe.training.select_by == "auto" else metric,
            threshold=None if spec.decision is None else spec.decision.report(**tested.counts),
            chosen=answer.choice.rule,
            rules=answer.choice.scores,
            leaderboard=self.leaderboard(answer, tested.simple),
            signal=" ".join(verdict.sentences),
            signals=verdict.signals,
            interrupted=interrupted,
            seconds=Seconds(pretrain=0.0, prepare=0.0, train=0.0, epoch_median=median(fit_seconds)),
        )

    def test(self, checkpoint: Checkpoint, fits: list[tuple[Entry, FitResult]]) -> _TestScores:
        """Score test, only once for the final answer; simple candidates that are no members are fitted again."""
        given = self.dataset.subgraphs
        held_out = np.empty(0, np.int64) if given.splits is None else given.indices("test")
        if not len(held_out):
            return _TestScores()
        test, graph, metric = given.take(held_out), self.fits.graph, self.scores.metric_name
        device = torch.device("cpu")
        context = LoadContext(device, tables=_tables(fits), cache=self.fits.cache)
        fitted, spec = open_checkpoint(checkpoint, graph, context), checkpoint.spec
        outputs, targets = fitted.outputs(test.nodes), target_tensor(test, spec.standards)
        members = {row.name: fit for row, fit in fits}
        simple = {}
        for row in self.finished:
            if trainable_model_of(row.recipe).is_fitted_in_one_go and (
                row.name in members or self.budget.left > row.refit
            ):
                found = (members.get(row.name) or self._fit(row)).checkpoint
                of_row = open_checkpoint(found, graph, LoadContext(device)).outputs(test.nodes)
                simple[row.name] = output_metrics(of_row, test, found.spec, select_by=metric)[metric]
        counts = {}
        if spec.decision is not None:
            counts["test"] = spec.decision.counts(
                task_of(test.task).scores(outputs), np.asarray(test.targets), spec.classes
            )
        return _TestScores(
            outputs,
            output_metrics(outputs, test, spec, fitted.thresholds, select_by=metric),
            {"test": headline_interval([torch.from_numpy(outputs)], targets, test, thresholds=fitted.thresholds)},
            counts,
            simple,
        )
