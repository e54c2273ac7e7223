"""Damaged files of every kind are refused with one line, or read as what they then say.

The same in a large size: python benchmarks/fuzz.py.
"""

import pytest

from tests.fuzz import wrong
from tests.fuzz.kinds import KINDS
from tests.fuzz.runner import run_inputs

pytestmark = pytest.mark.slow


def test_damaged_files_of_every_kind():
    """Few inputs of each kind, in another process, which a reader may take down."""
    outcomes = list(run_inputs(list(KINDS), seed=0, inputs=8, seconds=60))
    assert [outcome for outcome in outcomes if not outcome.good] == []
    assert len(outcomes) == 8 * len(KINDS)
    assert sum(outcome.verdict == "refused" for outcome in outcomes) > len(outcomes) // 3


def test_wrong_readers_are_seen():
    outcomes = run_inputs(list(wrong.KINDS), seed=0, inputs=1, seconds=3, module="tests.fuzz.wrong")
    assert {outcome.kind: outcome.verdict for outcome in outcomes} == {
        "raises": "traceback",
        "hangs": "hang",
        "crashes": "crash",
        "takes all memory": "traceback",
        "believes": "read another content",
    }
