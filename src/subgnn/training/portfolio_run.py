"""Train a portfolio: judge the candidates and select the answer, fit its members again, and score it on test."""

import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray

from subgnn.data.dataset import Dataset
from subgnn.data.subgraphs import SubgraphSet
from subgnn.embeddings.sources import save_run_vectors
from subgnn.metrics.coverage import HeldOutScores
from subgnn.metrics.thresholds import NONE, Decision
from subgnn.models.auto import mean_scores
from subgnn.models.checkpoint import save_checkpoint
from subgnn.models.examples import label_unit, target_tensor
from subgnn.models.interface import LoadContext
from subgnn.models.novelty import Novelty
from subgnn.models.registry import open_checkpoint, trainable_model_of
from subgnn.models.spec import Checkpoint, ModelSpec
from subgnn.parallel.engine import Failure
from subgnn.parallel.interrupts import noted_interrupt
from subgnn.result import Alerts, LearningCurve, RunResult, Seconds
from subgnn.task import Standard, Thresholds, task_of
from subgnn.training.cross_validation import CrossValidation
from subgnn.training.devices import make_fabric
from subgnn.training.ensemble_selection import Calibration, Choice, OutOfFold, calibrate
from subgnn.training.fit import HELD_OUT, FitResult, score_fields
from subgnn.training.fits import Entry, Fold, open_fits, run_fit
from subgnn.training.label_signal import JudgedModel, Verdict, signal_of
from subgnn.training.options import RunOptions, TrainedRun
from subgnn.training.portfolio import Job, learning_curve
from subgnn.training.run_dir import CHECKPOINT, result_fields
from subgnn.training.search import CONSTANT, Search


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
        search = Search(dataset, options, fits, interrupt)
        learned_from = pool.given.subgraphs.nodes.take(np.flatnonzero(pool.whole() < HELD_OUT))
        novelty = beside.submit(Novelty.of, pool.given.graph, learned_from, options.seed)
        search.judge()
        judged_at, training = time.monotonic(), _Training(dataset, search)
        answer = training.answer()
        search.report("fitting the members again")
        answer, members, curve = training.refit(answer)
        tables = {fit.checkpoint.spec.vectors_hash: fit.vectors for _, fit in members if fit.vectors is not None}
        save_run_vectors(tables.values(), pool.given.graph, options.out)
        checkpoint = training.checkpoint(answer, members, novelty.result())
        save_checkpoint(checkpoint, options.out / CHECKPOINT)
        result, outputs = training.result(answer, checkpoint, members)
        ended, begin = time.monotonic(), search.budget.begin
        seconds = {"train": ended - begin, "judge": judged_at - begin, "refit": ended - judged_at}
        result = replace(result, learning_curve=curve, seconds=replace(result.seconds, **seconds))
        result.save(options.out)
    out_of_fold = answer.calibrated(checkpoint.spec.standards.get("target"))
    rows = pool.rows[search.pool.judged]
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
        return [(row, float(w)) for row, w in zip(self.rows, self.choice.weights, strict=True) if w > 0]

    def only(self, names: Sequence[str]) -> Self:
        """The ensemble of some of its members, calibrated anew; the same if these are all of them."""
        kept = np.where([row.name in names for row in self.rows], self.choice.weights, 0.0)
        if not kept.any() or (kept == self.choice.weights).all():
            return self
        weights = kept / kept.sum()
        calibration = calibrate(self.given.mixed(weights), self.given.targets, self.given.task)
        return replace(self, choice=replace(self.choice, weights=weights), calibration=calibration)


_GAIN_OF_ALL = 0.02
"""How much lower the sample's score may be for members that can still be fitted to all subgraphs, as a share of 1 minus
the score of a guess."""


class _Training:
    """A portfolio whose candidates are judged."""

    def __init__(self, dataset: Dataset, search: Search) -> None:
        self.dataset, self.search, self.pool, self.fits = dataset, search, search.pool, search.fits
        self.options, self.budget, self.scores = search.options, search.budget, search.scores

    def answer(self) -> _Ensemble:
        """The answer of all candidates or, after judging a sample, of those that can still be fitted to all subgraphs.

        A slower one stays if the others are much worse without it; its model from the first fold then answers.
        """
        rows, left, seconds = self.search.finished, self.budget.left - self.budget.end / 2, self.search.refit_seconds
        much = _GAIN_OF_ALL * (1 - cast(float, self.scores.constant()["score"]))
        while len(rows) > 1 and self.pool.dataset is not self.pool.given:
            members = self.search.members(rows)
            if seconds(members) <= left:
                break
            needs, slowest = max(((seconds([row]), row) for row in members), key=lambda pair: pair[0])
            others = [row for row in rows if row is not slowest]
            if slowest.can_answer and self.search.score(others) < self.search.score(rows) - much:
                break
            slowest.late, slowest.note = True, f"not used: no time for its final fit, about {max(1, round(needs))} s"
            rows = others
        given, subgraphs, choice = self.search.given(rows), self.pool.subgraphs, self.search.choice(rows)
        targets = given.targets
        answer = _Ensemble(rows, given, choice, calibrate(given.mixed(choice.weights), targets, subgraphs.task))
        aim = self.options.recipe.training.threshold
        if aim == NONE:
            return answer
        task = task_of(subgraphs.task)
        decision = Decision.choose(
            aim,
            task.scores(answer.calibrated()),
            targets,
            task=subgraphs.task,
            classes=subgraphs.classes,
            positive=task.positive(targets),
            chosen_on="out-of-fold",
        )
        return replace(answer, decision=decision)

    def refit(self, answer: _Ensemble) -> tuple[_Ensemble, list[tuple[Entry, FitResult]], LearningCurve | None]:
        """Fit the members to all subgraphs, as far as there is time, and to parts of them for a learning curve."""
        self.fits.stop = lambda: self.budget.left < self.budget.end / 2
        members = [row for row, _ in answer.members if row.recipe.method != CONSTANT]
        found: dict[str, FitResult | Failure] = {}

        def fit_many(parts: Sequence[Job]) -> list[NDArray[np.float32] | None]:
            """Fit the members to all subgraphs, then candidates to parts, whose predictions are returned."""
            predicted: list[NDArray[np.float32] | None] = [None] * len(parts)
            left = self.budget.left - self.budget.end / 2
            in_time = [row for row in members if self.search.refit_seconds([row]) <= left or not row.can_answer]
            jobs = [self.fits.job(row, self.pool.whole()) for row in in_time]
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
        rows = [self.search.constant()]
        answer = replace(answer, rows=rows, given=self.search.given(rows), choice=Choice("best", np.ones(1), {}))
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
        held_out = HeldOutScores.of(scores, np.asarray(pool.subgraphs.targets), subgraphs.task)
        spec = replace(spec, decision=answer.decision, held_out=held_out, novelty=novelty)
        return Checkpoint(spec, weights, {row.name: fit.checkpoint for row, fit in members})

    def result(
        self, answer: _Ensemble, checkpoint: Checkpoint, members: list[tuple[Entry, FitResult]]
    ) -> tuple[RunResult, NDArray[np.float32] | None]:
        """The result, whose seconds are still without those of the whole, and outputs for test, which is scored here.

        Nothing else looks at test, and only the final answer is scored on it.
        """
        options, subgraphs, spec = self.options, self.pool.subgraphs, checkpoint.spec
        metric, target, task = self.scores.metric_name, spec.standards.get("target"), task_of(subgraphs.task)
        thresholds: Thresholds = checkpoint.weights.get("thresholds", 0.5)
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
                found = torch.tensor(fit.outputs["test"]), target_tensor(test, own)
                simple[row.name] = task.metrics(*found, unit=label_unit(own), select_by=metric)[metric]
            if spec.decision is not None:
                counts["test"] = spec.decision.counts(task.scores(outputs), np.asarray(test.targets), spec.classes)
        fields, targets = score_fields(scored, spec, thresholds, metric), target_tensor(subgraphs, spec.standards)
        losses = [float(task.loss(torch.from_numpy(one.astype(np.float32)), targets)) for one in calibrated]
        fields["val"] = {"loss": float(np.mean(losses)), **fields["val"]}
        verdict, seconds = self._verdict(), [seconds for row in self.search.finished for seconds in row.seconds]
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
            leaderboard=self.search.leaderboard({row.name: weight for row, weight in answer.members}, simple),
            signal=" ".join(verdict.sentences),
            signals=verdict.signals,
            interrupted=self.search.interrupt.pressed,
            late=tuple(row.name for row in self.search.entries if row.late),
            judged=len(subgraphs) if len(subgraphs) < (self.pool.whole() < HELD_OUT).sum() - len(self.pool.val) else 0,
            seconds=Seconds(pretrain=0.0, prepare=0.0, train=0.0, epoch_median=median(seconds or [0.0])),
        )
        return result, outputs

    def _verdict(self) -> Verdict:
        """What the out-of-fold predictions say of the labels."""
        if all(row.recipe.method == CONSTANT for row in self.search.finished):
            return Verdict((), ("There was no time to try a model, so nothing is known about the labels.",))
        judged = []
        for row in self.search.finished:
            model, method = trainable_model_of(row.recipe), row.recipe.method
            sees, uses = model.sees(row.recipe), model.uses(row.recipe)
            judged.append(JudgedModel(row.name, sees, simple=model.is_fitted_in_one_go, method=method, uses=uses))
        untried = [row.name for row in self.search.entries if row.predictions is None and row.late]
        return signal_of(judged, self.search.given(), untried)
