"""Contributions of parts and calibration, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from subgnn.metrics.calibration import calibration
from subgnn.metrics.significance import wilson


def test_calibration_by_hand():
    said = np.array([0.05, 0.95, 0.97, 0.99, 1.0])
    bins, error = calibration(said, np.array([True, True, False, True, True]))
    assert [(b.begin, b.end, b.count) for b in bins] == [(0.0, 0.1, 1), (0.9, 1.0, 4)]
    assert (bins[1].said, bins[1].right) == pytest.approx((0.9775, 0.75))
    assert error == pytest.approx(0.2 * 0.95 + 0.8 * 0.2275)
    assert all(b.low <= b.right <= b.high for b in bins)


def test_wilson_solves_its_equation():
    # The ends are the shares p with |seen - p| = z sqrt(p (1 - p) / n).
    for seen, count in ((0.3, 10), (0.75, 4), (0.5, 1000)):
        for p in wilson(seen, count):
            assert abs(seen - p) == pytest.approx(1.959964 * math.sqrt(p * (1 - p) / count))
    assert wilson(0.0, 5)[0] == pytest.approx(0)
    assert wilson(1.0, 5)[1] == pytest.approx(1)
