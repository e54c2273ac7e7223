"""Several runs side by side, and what they say together."""

from subgnn.experiments.quick import QUICK_RECIPES, run_quick, write_quick
from subgnn.experiments.signal import Verdict, judge

__all__ = ["QUICK_RECIPES", "Verdict", "judge", "run_quick", "write_quick"]
