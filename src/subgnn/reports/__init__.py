"""The page of a run: one self-contained HTML file."""

from subgnn.reports.page import run_report, write_page, write_report

__all__ = ["run_report", "write_page", "write_report"]
