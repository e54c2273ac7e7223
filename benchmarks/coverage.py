"""Check the coverage of sets of labels on finished runs of a portfolio: ten folds of their out-of-fold predictions.

    python benchmarks/coverage.py RUN=DIR... [--by-class] [--adaptive]

RUN is the folder of a run, DIR its dataset. The labelled subgraphs are dealt into ten parts (equal nodes together).
For each part, weights of the members, calibration and sets are chosen on the other nine, and the sets are counted on
the part: the share that contains the true label (all of them, if there are several), and the mean number of labels, or
for real values the mean width of the interval. ``--adaptive`` measures another score instead: the sum of the
probabilities of all labels that are likelier than the true one, and of the true one itself.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subgnn.data.formats import read_dataset
from subgnn.data.splits import draw_folds, split_units
from subgnn.metrics.coverage import HeldOutScores, in_set
from subgnn.result import read_result
from subgnn.task import task_of
from subgnn.training.ensemble_selection import RULES, OutOfFold, calibrate
from subgnn.training.portfolio import read_candidate

COVERAGES = (0.8, 0.9, 0.95)


def predictions_by_part(run: Path, data: Path) -> tuple[OutOfFold, list[tuple[NDArray[Any], NDArray[Any], Any, Any]]]:
    """Of each of ten parts: the rows of the others and its own, and the predictions of the answer chosen on others."""
    result, subgraphs = read_result(run), read_dataset(data).subgraphs
    found = [read_candidate(run, row.name) for row in result.leaderboard if row.score is not None and row.recipe]
    repeats = max(len(predictions) for predictions, _ in found)
    stacked = np.stack([one[np.arange(repeats) % len(one)].astype(np.float64) for one, _ in found])
    some = subgraphs.take(found[0][1])
    given = OutOfFold(stacked, np.asarray(some.targets, np.float64), some.task, split_units(some, some.groups))
    parts, task = draw_folds(some, 0, "benchmarks/coverage", folds=10), task_of(some.task)
    answers = []
    for part in range(int(parts.max()) + 1):
        rest, own = np.flatnonzero(parts != part), np.flatnonzero(parts == part)
        weights = RULES[result.chosen](given.take(rest))
        mixed = given.mixed(weights)
        calibration = calibrate(mixed[:, rest], given.targets[rest], some.task)
        answers.append((rest, own, task.scores(calibration.apply(mixed, some.task)), some.num_classes or 1))
    return given, answers


def adaptive(probabilities: NDArray[Any]) -> NDArray[Any]:
    """One less the sum of the probabilities of the labels that are as likely as each (..., classes)."""
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    sums = np.cumsum(np.take_along_axis(probabilities, order, -1), -1)
    found = np.empty_like(probabilities)
    np.put_along_axis(found, order, 1 - sums, -1)
    return found


def measure(run: Path, data: Path, *, by_class: bool, by_sums: bool) -> None:
    given, answers = predictions_by_part(run, data)
    task, cells = task_of(given.task), []
    for coverage in COVERAGES:
        covered, sizes = [], []
        for rest, own, scores, outputs in answers:
            scores = adaptive(scores) if by_sums and task.one_class else scores
            held_out = HeldOutScores.of(scores[:, rest], given.targets[rest], given.task)
            limits = held_out.limits(coverage, outputs, by_class=by_class and not task.real)
            for one in scores[:, own]:
                if task.real:
                    covered.append(np.abs(one[:, 0] - given.targets[own]) <= limits[0])
                    sizes.append(np.full(len(own), 2 * limits[0]))
                else:
                    inside = in_set(one, limits)
                    true = task.indicators(given.targets[own], outputs) > 0
                    covered.append((inside | ~true).all(axis=1))
                    sizes.append(inside.sum(axis=1))
        cells.append(f"{np.concatenate(covered).mean():.3f} {np.concatenate(sizes).mean():6.2f}")
    print(f"{run.name:18} {given.task:12} {len(given.targets):6} {answers[0][3]:4}   " + "   ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN=DIR")
    parser.add_argument("--by-class", action="store_true")
    parser.add_argument("--adaptive", action="store_true")
    options = parser.parse_args()
    asked = "   ".join(f"{coverage:5g} {'size':>6}" for coverage in COVERAGES)
    print(f"{'run':18} {'task':12} {'n':>6} {'cl.':>4}   {asked}")
    for pair in options.runs:
        run, _, data = pair.partition("=")
        measure(Path(run), Path(data), by_class=options.by_class, by_sums=options.adaptive)


if __name__ == "__main__":
    main()
