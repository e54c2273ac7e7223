"""Compare kernels for a GPU with what torch does: errors against double precision, milliseconds, and losses.

    python benchmarks/gpu_kernels.py [density] [ppi_bp] [surroundings] [--data DIR] [--seeds 3] [--profile]

The first two compare the LSTM over walks by cuDNN with Triton's kernels (:mod:`subgnn.kernels.lstm_gpu`); the third
compares training with ways to compute the gradient of picked rows (:func:`subgnn.models.subgnn.layer.weighted_bag`).
Inputs of the first tables are those of the first step of training and those after training. A step is timed as a
captured graph that is replayed, without the host. ``--data`` is as in epoch.py.
"""

import argparse
import copy
import itertools
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from epoch import CASES, dataset_of
from subgnn.api.train_recipe import train
from subgnn.models.recipes import find_recipe
from subgnn.models.subgnn import layer, patch_encoder
from subgnn.training import steps
from subgnn.training.options import Callbacks

DEVICE = "cuda"
LAUNCHES = {"cuDNN": None, "ieee": (16, 8, "ieee"), "tf32x3": (16, 8, "tf32x3")}
GRID = [(16, 8, "ieee"), *((walks, warps, "tf32x3") for walks in (16, 32) for warps in (4, 8))]
FIRST = 8  # epochs that load kernels and capture steps


SPREADS = {"torch": 0, "dense": layer.DENSE_NUMBERS}  # the largest dense matrix


def _choose(variant: str, names: dict[str, Any]) -> None:
    if names is SPREADS:
        layer.DENSE_NUMBERS = SPREADS[variant]
    else:
        patch_encoder.LAUNCH = LAUNCHES[variant]


def train_once(name: str, dataset: Any, seed: int, profile: bool = False) -> tuple[float, list[float], float]:
    """Milliseconds of an epoch with its validation, the losses of all epochs, and microseconds of a replayed step."""
    case = CASES[name]
    epochs = FIRST + case.epochs[DEVICE]
    recipe = find_recipe(case.recipe, [*case.settings, f"training.epochs={epochs}"])
    ends: list[float] = []
    losses: list[float] = []
    captured: list[Any] = []
    step_us = float("nan")
    capture = steps.GraphedSteps._capture

    def keep(*given: Any) -> Any:
        captured.append(capture(*given))
        return captured[-1]

    profiler: Any = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) if profile else None

    def after(record: dict[str, Any]) -> None:
        nonlocal step_us
        torch.cuda.synchronize()
        ends.append(time.perf_counter())
        losses.append(record["train_loss"])
        if len(ends) == epochs and captured:
            step_us = 1e3 * _replayed_ms(captured[0].graph)
        if profiler is not None and len(ends) == epochs - 4:
            profiler.__enter__()
        if profiler is not None and len(ends) == epochs - 1:
            profiler.__exit__(None, None, None)
            table = profiler.key_averages().table(
                sort_by="self_device_time_total", row_limit=25, max_name_column_width=80
            )
            print(table, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        out, callbacks = Path(folder) / "run", Callbacks(on_epoch=after)
        steps.GraphedSteps._capture = keep
        train(dataset, recipe, out, device=DEVICE, seed=seed, report=False, callbacks=callbacks)
        steps.GraphedSteps._capture = capture
    times = [b - a for a, b in itertools.pairwise(ends)]
    return 1e3 * median(times[FIRST:]), losses, step_us


def compare(name: str, dataset: Any, names: dict[str, Any], *, seeds: int, profile: bool) -> None:
    """Print milliseconds of an epoch as ratios of the first variant, and losses by seed."""
    taken: dict[str, list[float]] = {variant: [] for variant in names}
    for seed in range(seeds):
        for variant in names:
            try:
                _choose(variant, names)
                ms, losses, step = train_once(name, dataset, seed)
            except Exception:
                print(f"{name}, {variant}, seed {seed}: {traceback.format_exc(limit=4)}", flush=True)
                continue
            taken[variant].append(ms)
            shown = [f"{i + 1}: {losses[i]:.7f}" for i in (0, 1, 2, 4, 9, 19, len(losses) - 1) if i < len(losses)]
            base = median(taken[next(iter(names))] or [ms])
            seen = sum(len(dataset.subgraphs.indices(split)) for split in ("train", "val"))
            print(f"{name}, seed {seed}, {variant}: {ms:.2f} ms, {base / median(taken[variant]):.2f} times the speed;")
            print(f"    {step:.1f} us a replayed step; {1e3 * seen / ms:,.0f} subgraphs a second;")
            print(f"    losses of epochs {', '.join(shown)}", flush=True)
    for variant in names if profile else ():
        if variant in ("cuDNN", "tf32x3", "dense"):
            print(f"profile of {name}, {variant}")
            _choose(variant, names)
            train_once(name, dataset, 0, profile=True)


def captured_ms(step: Callable[[], Any]) -> float:
    """Milliseconds of a step that is replayed as a CUDA graph."""
    stream: Any = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    return _replayed_ms(graph)


def _replayed_ms(graph: Any) -> float:
    seconds = []
    for _ in range(30):
        begin = time.perf_counter()
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - begin) / 10)
    return 1e3 * median(seconds)


def tabulate(what: str, reference: dict[str, Tensor], found: dict[str, dict[str, Tensor]]) -> None:
    """Print the largest error of each array, relative to its largest number."""
    print(f"{what}: largest error / largest number, by array")
    print(f"    {'':28}" + "".join(f"{name:>16}" for name in found))
    for key, exact in reference.items():
        scale = float(exact.abs().max()) or 1.0
        errors = [float((given[key].cpu().double() - exact).abs().max()) / scale for given in found.values()]
        print(f"    {key:28}" + "".join(f"{error:16.2e}" for error in errors), flush=True)


def check_lstm(name: str, dataset: Any) -> None:
    """Errors of totals and gradients on real walks, before and after training, and milliseconds by launch."""
    seen: list[Any] = []
    forward = patch_encoder.PatchEncoder.forward

    def spy(self: Any, table: Tensor, walks: Any) -> Tensor:
        if not seen and torch.is_grad_enabled():
            seen.extend([self, table, walks, copy.deepcopy(self.lstm), table.detach().clone()])
        return forward(self, table, walks)

    patch_encoder.PatchEncoder.forward = spy
    _choose("cuDNN", LAUNCHES)
    train_once(name, dataset, 0)
    patch_encoder.PatchEncoder.forward = forward
    encoder, table, walks, first_lstm, first_table = seen
    print(
        f"{name}: {len(walks.lengths)} walks of up to {len(walks.sizes)} steps, {len(walks.nodes)} nodes, width "
        f"{encoder.lstm.hidden_size}, {encoder.lstm.num_layers} layers"
    )
    for when, lstm, vectors in (
        ("first step", first_lstm, first_table),
        ("after training", encoder.lstm, table.detach()),
    ):
        _errors_of_lstm(f"{name}, {when}", copy.deepcopy(lstm).eval(), vectors, walks)
    lstm = copy.deepcopy(first_lstm).train()
    vectors = first_table.requires_grad_()
    base = 0.0
    for launch in [None, *GRID]:
        patch_encoder.LAUNCH = launch

        def step() -> None:
            for weight in (vectors, *lstm.parameters()):
                weight.grad = None
            with patch_encoder.single_precision():
                patch_encoder.lstm_totals(lstm, vectors, walks).sum().backward()

        try:
            ms = captured_ms(step)
        except Exception as error:
            print(f"    {launch}: {str(error).splitlines()[0] if str(error) else error!r}", flush=True)
            continue
        base = base or ms
        print(f"    {name}, LSTM alone, {launch or 'cuDNN'}: {ms:.3f} ms, {base / ms:.2f} times the speed", flush=True)


def _errors_of_lstm(what: str, lstm: Any, table: Tensor, walks: Any) -> None:
    given = torch.randn(walks.num_patches, 2 * lstm.hidden_size, generator=torch.Generator().manual_seed(0))

    def run(lstm: Any, table: Tensor, walks: Any, totals: Callable[..., Tensor]) -> dict[str, Tensor]:
        lstm, table = copy.deepcopy(lstm).train(), table.detach().clone().requires_grad_()
        lstm.dropout = 0.0
        found = totals(lstm, table, walks)
        (found * given.to(found)).sum().backward()
        grads = {f"gradient of {key}": p.grad for key, p in lstm.named_parameters()}
        return {"sums of states": found.detach(), "gradient of vectors": table.grad, **grads}

    def torchs(lstm: Any, table: Tensor, walks: Any) -> Tensor:
        states = lstm(PackedSequence(table[walks.nodes][walks.places], torch.tensor(walks.sizes)))[0].data
        return states.new_zeros(walks.num_patches, states.shape[1]).index_add(0, walks.owner, states)

    exact = run(lstm.cpu().double(), table.cpu().double(), copy.deepcopy(walks).cpu(), torchs)
    lstm = lstm.float().to(DEVICE)
    found = {}
    torch.backends.cudnn.allow_tf32 = True
    found["cuDNN, TF32"] = run(lstm, table, walks, torchs)
    torch.backends.cudnn.allow_tf32 = False
    for name, launch in LAUNCHES.items():
        patch_encoder.LAUNCH = launch
        found[name] = run(lstm, table, walks, patch_encoder.lstm_totals)
    tabulate(what, exact, found)


def main() -> None:
    """Run each case in a process of its own: after an error, CUDA refuses everything else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=["density", "ppi_bp", "surroundings"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=170, help="seconds of a case")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        (name,) = options.cases
        dataset = dataset_of(CASES[name], options.data)
        names: dict[str, Any] = SPREADS if name == "surroundings" else LAUNCHES
        try:
            if names is LAUNCHES:
                check_lstm(name, dataset)
        except Exception:
            traceback.print_exc()
        compare(name, dataset, names, seeds=options.seeds, profile=options.profile)
        return
    with tempfile.TemporaryDirectory() as cache:
        for name in options.cases:
            words = [sys.executable, __file__, name, "--one", "--seeds", str(options.seeds)]
            words += ["--data", str(options.data)] if options.data else []
            words += ["--profile"] if options.profile else []
            try:
                subprocess.run(
                    words,
                    env={**os.environ, "SUBGNN_CACHE": cache},
                    timeout=options.limit,
                    check=False,
                    stderr=sys.stdout,
                )
            except subprocess.TimeoutExpired:
                print(f"{name}: stopped after {options.limit:.0f} s", flush=True)


if __name__ == "__main__":
    main()
