"""A run as one file that can be carried elsewhere: container (all that predicts), program (a torch.export program)."""

from subgnn.inference.export_file import Exported, export_run, read_export
from subgnn.inference.program import export_program, program_inputs

__all__ = ["Exported", "export_program", "export_run", "program_inputs", "read_export"]
