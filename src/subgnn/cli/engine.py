"""The options ``--engine`` and ``--address``: which processes and machines do the work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from subgnn.parallel.engine import Engine


class EngineKind(StrEnum):
    """Engines by name."""

    local = "local"
    ray = "ray"


EngineChoice = Annotated[
    EngineKind, typer.Option("--engine", help="Work in this process, or on Ray's workers; results are the same.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="Head of a Ray cluster, or auto; by default a Ray is started on this machine, and stopped again.",
    ),
]


@contextmanager
def cluster(
    engine: EngineKind, address: str | None, *, processes: int | None = None, device: str = "cpu"
) -> Iterator[Engine | None]:
    """Connect to Ray until the end of the block; gives None for the local engine.

    Args:
        processes: the most jobs at once.
        device: with ``cuda``, each job takes a part of a GPU.
    """
    from subgnn.parallel.cluster import GPU_SHARE, open_engine

    gpus = GPU_SHARE if device == "cuda" else 0.0
    with (
        open_engine(engine.value, address=address, processes=processes, gpus=gpus) as opened,
        # Ray prints messages about lost machines on stdout, which is for results.
        redirect_stdout(sys.stdout if engine is EngineKind.local else sys.stderr),
    ):
        yield None if engine is EngineKind.local else opened
