"""One device for one process, in place of Lightning's ``Fabric``, which takes seconds to import."""

from typing import Any

import torch
from torch import Tensor, nn

from subgnn.errors import UserError


class OneDevice:
    """The CPU or a GPU; ``name`` is auto, cpu or cuda, and auto is a GPU where there is one."""

    world_size, global_rank, is_global_zero = 1, 0, True

    def __init__(self, name: str) -> None:
        if name == "cuda" and not torch.cuda.is_available():
            raise UserError("no GPU was found", where="--device cuda", hint="use --device cpu or auto")
        use_gpu = name != "cpu" and torch.cuda.is_available()
        self.device = torch.device("cuda", torch.cuda.current_device()) if use_gpu else torch.device("cpu")

    def setup(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Any, Any]:
        return model.to(self.device), optimizer

    def backward(self, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def broadcast(self, value: Any) -> Any:
        return value

    def all_reduce(self, value: Any, **_: Any) -> Any:
        return value
