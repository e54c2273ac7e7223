"""The options ``--engine`` and ``--address``: which processes and machines do the work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

if TYPE_CHECKING:
    from subgnn.parallel.engine import Engine


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The engine and the machines that do the work of a command."""

    engine: Annotated[
        Literal["local", "ray"], Option(help="Work in this process, or on Ray's workers; results are the same.")
    ] = "local"
    address: Annotated[
        str | None,
        Option(
            metavar="HOST:PORT",
            help="Head of a Ray cluster, or auto; by default Ray is started on this machine, and stopped again.",
        ),
    ] = None

    @contextmanager
    def open(self, *, processes: int | None = None, device: str = "cpu") -> Iterator[Engine | None]:
        """Connect to Ray until the end of the block; gives None for the local engine.

        Args:
            processes: the most jobs at once.
            device: with ``cuda``, each job takes a part of a GPU.
        """
        from subgnn.parallel.cluster import GPU_SHARE, open_engine

        gpus, local = GPU_SHARE if device == "cuda" else 0.0, self.engine == "local"
        with (
            open_engine(self.engine, address=self.address, processes=processes, gpus=gpus) as opened,
            # Ray prints messages about lost machines on stdout, which is for results.
            redirect_stdout(sys.stdout if local else sys.stderr),
        ):
            yield None if local else opened
