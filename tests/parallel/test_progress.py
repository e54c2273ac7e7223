"""Pieces cover the work, in order, whatever the clock says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subgnn.parallel import progress as pacing
from subgnn.parallel.progress import pieces


@given(
    count=st.integers(0, 200),
    step=st.integers(1, 20),
    most=st.none() | st.integers(0, 90),
    ticks=st.lists(st.floats(0, 3), min_size=1, max_size=8),
)
def test_they_cover_the_work_in_order(count, step, most, ticks):
    clock = iter(range(10**6))
    told = []
    with pytest.MonkeyPatch.context() as patch:
        now = [0.0]

        def tick() -> float:
            now[0] += ticks[next(clock) % len(ticks)]
            return now[0]

        patch.setattr(pacing.time, "perf_counter", tick)
        found = list(pieces(count, step=step, most=most, what="x", on_progress=lambda *a: told.append(a)))
    assert [i for part in found for i in range(part.start, part.stop)] == list(range(count))
    assert all((part.stop - part.start) % step == 0 for part in found[:-1])
    assert all(part.stop - part.start <= max(step, count if most is None else most) for part in found)
    assert told == [("x", done, count) for done in (0, *(part.stop for part in found))]
