"""Whether counts could have come from a distribution: Pearson's chi-square, many distributions at a time."""

from collections.abc import Iterable, Mapping
from typing import Any

from scipy.stats import chisquare

# Keys are fixed, so a test passes always or never; this is how improbable a right kernel's draws may be.
LEAST_P = 1e-4
_LEAST_EXPECTED = 5.0


def p_value(groups: Iterable[tuple[Mapping[Any, int], Mapping[Any, float]]]) -> float:
    """The p-value of independent groups of counts, each against the probabilities of its outcomes.

    Outcomes of a group too rare for the test are merged. An impossible outcome that was seen gives 0.
    """
    observed: list[float] = []
    expected: list[float] = []
    compared = 0
    for counts, probabilities in groups:
        if any(probabilities.get(outcome, 0.0) == 0.0 for outcome in counts):
            return 0.0
        cells = _cells(counts, probabilities)
        if len(cells) > 1:
            compared += 1
            observed.extend(seen for seen, _ in cells)
            expected.extend(wanted for _, wanted in cells)
    return float(chisquare(observed, expected, ddof=compared - 1).pvalue) if compared else 1.0


def _cells(counts: Mapping[Any, int], probabilities: Mapping[Any, float]) -> list[tuple[float, float]]:
    """Observed and expected counts by rising expectation, the first of them merged until all are common enough."""
    total = sum(counts.values())
    cells = sorted(((counts.get(o, 0), total * p) for o, p in probabilities.items()), key=lambda cell: cell[1])
    while len(cells) > 1 and cells[0][1] < _LEAST_EXPECTED:
        (seen, wanted), (more_seen, more_wanted), *rest = cells
        cells = [(seen + more_seen, wanted + more_wanted), *rest]
    return [(float(seen), wanted) for seen, wanted in cells]


def uniform(outcomes: Iterable[Any]) -> dict[Any, float]:
    """Equal probabilities; none where there is no outcome."""
    listed = list(outcomes)
    return {outcome: 1.0 / len(listed) for outcome in listed}
