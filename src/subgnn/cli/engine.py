"""``--engine`` and ``--address``: where the work is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from typing import Annotated

import typer

from subgnn.parallel.engine import Engine


class EngineKind(StrEnum):
    """What runs the work."""

    local = "local"
    ray = "ray"


EngineChoice = Annotated[
    EngineKind, typer.Option("--engine", help="What does the work: this process, or Ray's workers. Changes no result.")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The head of a Ray cluster, or auto; without it, Ray is started on this machine and stopped again.",
    ),
]


@contextmanager
def cluster(
    engine: EngineKind, address: str | None, *, processes: int | None = None, device: str = "cpu"
) -> Iterator[Engine | None]:
    """Ray's workers until the block ends; None where this machine does the work without Ray.

    Args:
        processes: jobs at once, at most.
        device: on ``cuda`` each job takes a part of a GPU.
    """
    from subgnn.parallel.cluster import GPU_SHARE, open_engine

    gpus = GPU_SHARE if device == "cuda" else 0.0
    with (
        open_engine(engine.value, address=address, processes=processes, gpus=gpus) as opened,
        # Ray tells of lost machines on stdout, which is for results.
        redirect_stdout(sys.stdout if engine is EngineKind.local else sys.stderr),
    ):
        yield None if engine is EngineKind.local else opened
