"""Dynamic time warping of degree sequences beside fastdtw and dtaidistance.

fastdtw with radius 1, as the paper's authors use it, is approximate: its answer is never below the exact one.
dtaidistance gets the whole block of pairs at once, on all cores, which is its fastest way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernel_cases.measure import Case, Rival
from kernel_cases.workloads import Workload
from subgnn.kernels.dtw import dtw
from subgnn.kernels.induced import inside_degrees
from subgnn.ragged import Ragged

FASTDTW_PAIRS = 400


def sequence_cases(load: Workload) -> Iterator[Case]:
    """Sorted border degrees: every component of 20 nodes with every patch of up to 50."""
    a, b = _degrees(load, load.components), _degrees(load, load.patches)
    series = [np.asarray(row, np.float64) for rows in (a, b) for row in rows]
    block = ((0, len(a)), (len(a), len(series)))
    pairs = [(i, j) for i in range(len(a)) for j in range(len(b))]
    picked = [pairs[p] for p in load.draw("pairs", FASTDTW_PAIRS, among=np.arange(len(pairs))).tolist()]

    def by_fastdtw() -> Any:
        import fastdtw

        return [fastdtw.fastdtw(a[i], b[j], radius=1)[0] for i, j in picked]

    def by_dtaidistance() -> Any:
        from dtaidistance import dtw as rival

        return rival.distance_matrix_fast(series, block=block, compact=True, parallel=True, inner_dist="euclidean")

    yield Case(
        "dtw, absolute cost",
        load.name,
        len(pairs),
        "pairs",
        lambda: dtw(a, b),
        [
            Rival(
                "fastdtw, radius 1",
                "fastdtw",
                by_fastdtw,
                lambda ours, theirs: all(t >= ours[i, j] for (i, j), t in zip(picked, theirs, strict=True)),
                FASTDTW_PAIRS,
                agreement="never below",
            ),
            Rival(
                "dtaidistance distance_matrix_fast",
                "dtaidistance",
                by_dtaidistance,
                lambda ours, theirs: np.array_equal(ours, np.asarray(theirs).reshape(ours.shape)),
            ),
        ],
    )


def _degrees(load: Workload, rows: Ragged) -> Ragged:
    _, border = inside_degrees(*load.graph.csr, rows)
    return Ragged.from_rows([np.sort(row) for row in border], np.float64)
