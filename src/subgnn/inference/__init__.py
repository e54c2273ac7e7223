"""Open a run or an export; predict, embed and evaluate; files of subgraphs; export."""

from subgnn.inference.export import export_program, export_run, program_inputs
from subgnn.inference.open import OpenedRun, open_run

__all__ = ["OpenedRun", "export_program", "export_run", "open_run", "program_inputs"]
