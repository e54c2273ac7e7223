"""Pages, charts and pictures, drawn by templates."""

from subgnn.render import write_page
from subgnn.reports.run_page import run_report, write_report

__all__ = ["run_report", "write_page", "write_report"]
