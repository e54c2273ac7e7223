"""Suites of runs: a claim as a file, run over seeds, and reported beside what was published."""

from subgnn.experiments.suite.plan import Request
from subgnn.experiments.suite.report import write_suite_report
from subgnn.experiments.suite.run import run_suite
from subgnn.experiments.suite.spec import Suite, find_suite, parse_suite

__all__ = ["Request", "Suite", "find_suite", "parse_suite", "run_suite", "write_suite_report"]
