"""Seconds of an epoch of training with its validation, on a CPU and on a GPU, and what they are spent on.

    python benchmarks/epoch.py [CASE ...] [--device cpu cuda] [--data DIR] [--tree DIR ...] [--profile]

A case is a recipe and a dataset (:data:`CASES`). ``--data`` is a folder that holds the datasets by name; without it,
or for one that it lacks, subgraphs of about the same size are generated. ``--tree`` names source trees that run in
turn, and whose speed is compared with that of the first; by default, this one alone. Each measurement is a process with
one thread (``--threads``). Its first epochs do not count: they load kernels and capture steps. The arithmetic floor of
a CPU is the time that the matrix products of an epoch take at the speed of one large product on the same thread;
those of compiled kernels, such as the LSTM's, are not counted.
``--profile`` adds the operators that take longest on the host and on the device.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
ENCODER = "encoder"
_PROFILED = 3  # epochs


@dataclass(frozen=True, slots=True)
class Case:
    """A recipe, the dataset it is measured on, and how many epochs are timed after how many others."""

    recipe: str
    dataset: str
    epochs: dict[str, int]
    first: int = 2
    settings: tuple[str, ...] = ()
    authors: float | None = None  # CPU seconds of an epoch of the authors' code
    sparse: bool = False  # whether products are sparse, which the counter of products takes for dense ones


_PATIENT = ("training.patience=0", "embeddings.source=random")
CASES = {
    "density": Case(
        "alsentzer2020_density_all", "glass_density", {"cpu": 40, "cuda": 40}, settings=_PATIENT, authors=0.92
    ),
    "ppi_bp": Case("alsentzer2020_ppi_bp", "ppi_bp", {"cpu": 2, "cuda": 30}, first=1, settings=_PATIENT),
    "subgnn": Case("subgnn", "glass_density", {"cpu": 20, "cuda": 30}, settings=_PATIENT),
    "surroundings": Case(
        "surroundings", "ppi_bp_rebuilt", {"cpu": 10, "cuda": 40}, settings=(*_PATIENT, "training.members=1")
    ),
    "gc": Case(
        "gc",
        "hpo_neuro_rebuilt",
        {"cpu": 4, "cuda": 8},
        sparse=True,
        settings=(*_PATIENT, "baseline.tune_embeddings=false"),
    ),
}


def ppi_like(nodes: int = 17_080, edges: int = 316_951, subgraphs: int = 1_591, seed: int = 0) -> Any:
    """A random graph with a heavy tail of degrees, and subgraphs of about ten nodes in several components."""
    from subgnn import Dataset, Graph, SubgraphSet

    rng = np.random.default_rng(seed)
    weights = rng.permutation(np.arange(1, nodes + 1) ** -0.6)
    ends = rng.choice(nodes, (2, int(1.2 * edges)), p=weights / weights.sum())
    keys = np.unique(np.sort(ends, axis=0)[:, ends[0] != ends[1]].astype(np.int64).T @ [nodes, 1])
    keys = rng.permutation(keys)[:edges]
    rows = [rng.choice(nodes, size=rng.integers(5, 30), replace=False).tolist() for _ in range(subgraphs)]
    labels = [f"class {i}" for i in rng.integers(0, 6, subgraphs)]
    splits = rng.choice(["train", "val", "test"], subgraphs, p=[0.8, 0.1, 0.1]).tolist()
    graph = Graph.from_edges(keys // nodes, keys % nodes, num_nodes=nodes)
    return Dataset("ppi-like", graph, SubgraphSet.from_lists(rows, labels=labels, splits=splits, num_nodes=nodes))


def dataset_of(case: Case, folder: Path | None) -> Any:
    """The dataset of a case, or a generated one of its size."""
    from subgnn import read_dataset

    if folder is not None and (folder / case.dataset).is_dir():
        return read_dataset(folder / case.dataset)
    if case.dataset == "glass_density":
        from subgnn.data.synthetic import generate

        return generate("density", seed=0, num_subgraphs=400)
    if case.dataset.startswith("ppi_bp"):
        return ppi_like()
    return ppi_like(nodes=18_387, edges=1_368_801, subgraphs=2_851)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the epochs of one case, in this process."""
    import logging
    import warnings

    import torch

    from subgnn.api.train_recipe import train
    from subgnn.models.recipes import find_recipe
    from subgnn.training.options import Callbacks

    case, device = CASES[name], options.device[0]
    warnings.simplefilter("ignore")
    logging.getLogger("lightning").setLevel(logging.ERROR)
    torch.set_num_threads(options.threads)
    # On a GPU, each size of batch is captured after a few steps; the last batch of an epoch has its own size.
    first, timed = (case.first if device == "cpu" else 8), case.epochs[device]
    epochs = first + timed + (_PROFILED + 1 if options.profile else 0) + (device == "cpu")
    recipe = find_recipe(case.recipe, [*case.settings, f"training.epochs={epochs}", *(options.set or ())])
    dataset = dataset_of(case, options.data)
    wall, cpu, losses, tools = [], [], [], _Tools(device, profile=options.profile)

    def after(record: dict[str, Any]) -> None:
        if device == "cuda":
            torch.cuda.synchronize()
        wall.append(time.perf_counter())
        cpu.append(time.process_time())
        losses.append(record["train_loss"])
        tools.after(len(wall) - first - timed)

    with tempfile.TemporaryDirectory() as folder:
        train(
            dataset,
            recipe,
            Path(folder) / "run",
            device=device,
            cache=False,
            report=False,
            callbacks=Callbacks(on_epoch=after),
        )
    times = [b - a for a, b in zip(wall[first - 1 : first + timed - 1], wall[first : first + timed], strict=True)]
    busy = [b - a for a, b in zip(cpu[first - 1 : first + timed - 1], cpu[first : first + timed], strict=True)]
    steps = -(-len(dataset.subgraphs.indices("train")) // recipe.training.batch_size)
    found = {"seconds": median(times), "least": min(times), "cpu": median(busy), "cpu_least": min(busy), "steps": steps}
    found["subgraphs"] = len(dataset.subgraphs.indices("train")) + len(dataset.subgraphs.indices("val"))
    loss = losses[first + timed - 1]
    return found | {"loss": loss, "dataset": dataset.name, "torch": torch.__version__, **tools.found}


class _Tools:
    """What is measured in epochs after the timed ones: products, and the profile."""

    def __init__(self, device: str, *, profile: bool) -> None:
        self.device, self.profile, self.found = device, profile, {}
        self.counter: Any = None
        self.profiler: Any = None

    def after(self, epoch: int) -> None:
        """Called when an epoch is done; the last timed one is number 0."""
        import torch
        from torch.utils.flop_counter import FlopCounterMode

        counted = self.device == "cpu"
        if epoch == 0 and counted:
            self.counter = FlopCounterMode(display=False)
            self.counter.__enter__()
        if epoch == 1 and counted:
            self.counter.__exit__(None, None, None)
            self.found |= {"gflop": self.counter.get_total_flops() / 1e9, "gflop_s": _speed()}
        begin = int(counted)
        if self.profile and epoch == begin:
            kinds = [torch.profiler.ProfilerActivity.CPU]
            kinds += [torch.profiler.ProfilerActivity.CUDA] if self.device == "cuda" else []
            self.profiler = torch.profiler.profile(activities=kinds)
            self.profiler.__enter__()
        if self.profile and epoch == begin + _PROFILED:
            self.profiler.__exit__(None, None, None)
            averages = self.profiler.key_averages()
            orders = ["self_cpu_time_total"] + (["self_device_time_total"] if self.device == "cuda" else [])
            self.found["profile"] = {
                order: averages.table(sort_by=order, row_limit=28, max_name_column_width=60) for order in orders
            }


def _speed() -> float:
    """GFLOP/s of one large product."""
    import torch

    size = 1024
    a = torch.randn(size, size)
    seconds = []
    for _ in range(8):
        begin = time.process_time()  # of all threads: the speed of one of them, also on a busy machine
        a @ a
        seconds.append(time.process_time() - begin)
    return 2 * size**3 / min(seconds) / 1e9


def time_encoder(options: argparse.Namespace, *, walks: int = 1000, dim: int = 64, layers: int = 2) -> dict[str, Any]:
    """Milliseconds of encoding the patches of PPI-BP, forwards and backwards, beside torch's own LSTM.

    On a GPU, also as a captured CUDA graph, which is how training runs it.
    """
    import torch
    from torch.nn.utils.rnn import PackedSequence

    from subgnn.models.subgnn.patch_encoder import PatchEncoder, Walks
    from subgnn.ragged import Ragged

    device = torch.device(options.device[0])
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    nodes = np.random.default_rng(0).integers(0, 3 * walks, 10 * walks)
    steps = Walks(Ragged.from_lengths(nodes, np.full(walks, 10)), 5).to(device)
    encoder = PatchEncoder(dim, lstm_layers=layers, dropout=0.2).to(device)
    table = (0.1 * torch.randn(3 * walks, dim)).to(device).requires_grad_()

    def ours() -> torch.Tensor:
        found: torch.Tensor = encoder(table, steps)
        return found

    def torchs() -> torch.Tensor:
        inputs = table.index_select(0, steps.nodes)[steps.places]
        states = encoder.lstm(PackedSequence(inputs, torch.tensor(steps.sizes)))[0].data
        total = states.new_zeros(steps.num_patches, 2 * dim).index_add(0, steps.owner, states)
        found: torch.Tensor = encoder.project(total)
        return found

    def step(encoded: Any) -> None:
        for weight in (table, *encoder.parameters()):
            weight.grad = None
        encoded().sum().backward()

    def timed(call: Any, repeats: int) -> float:
        clock = time.perf_counter if device.type == "cuda" else time.process_time
        seconds = []
        for _ in range(repeats + 2):
            begin = clock()
            call()
            if device.type == "cuda":
                torch.cuda.synchronize()
            seconds.append(clock() - begin)
        return 1e3 * median(seconds[2:])

    found = {}
    torch.backends.cudnn.allow_tf32 = False
    for name, encoded in {"ours": ours, "torch": torchs}.items():
        found[name] = timed(lambda encoded=encoded: step(encoded), 5)
        if device.type == "cuda":
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                step(encoded)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph, stream=stream):
                    step(encoded)
                found[f"{name}, captured"] = timed(graph.replay, 20)
            except RuntimeError as error:
                found[f"{name}, captured"] = str(error).splitlines()[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}, encoder; by default, all but gc"
    )
    parser.add_argument("--device", nargs="+", choices=("cpu", "cuda"), help="by default, all that are there")
    parser.add_argument("--data", type=Path, help="a folder of datasets")
    parser.add_argument("--tree", nargs="+", type=Path, default=[ROOT])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", action="append", metavar="SECTION.KEY=VALUE")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(time_encoder(options) if options.one == ENCODER else measure(options.one, options)))
        return
    if options.device is None:
        import torch

        options.device = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for device in options.device:
        for name in options.cases or [*[*CASES][:4], ENCODER]:
            before: dict[str, Any] | None = None
            for tree in options.tree:
                found = _in_process(name, device, tree, options)
                if name == ENCODER:
                    print(f"encoder of ppi_bp, {device}, {tree.resolve().name}: milliseconds", found, flush=True)
                    continue
                print(_line(name, device, tree, found, before), flush=True)
                for table in found.get("profile", {}).values():
                    print(table, flush=True)
                before = before or found


def _line(name: str, device: str, tree: Path, found: dict[str, Any], before: dict[str, Any] | None) -> str:
    case = CASES[name]
    parts = [
        f"{name} ({case.recipe} on {found['dataset']}), {device}, {tree.resolve().name}, torch {found['torch']}:",
        f"{found['seconds'] * 1e3:,.1f} ms an epoch of {found['steps']} steps (least {found['least'] * 1e3:,.1f};",
        f"CPU {found['cpu'] * 1e3:,.1f}, least {found['cpu_least'] * 1e3:,.1f}); loss {found['loss']:.6f};",
        f"{found['subgraphs'] / found['seconds']:,.0f} subgraphs a second",
    ]
    if "gflop" in found and not case.sparse:
        floor = found["gflop"] / found["gflop_s"]
        parts.append(f"; {found['gflop']:.2f} GFLOP, {floor * 1e3:,.1f} ms at {found['gflop_s']:.0f} GFLOP/s")
    if case.authors and device == "cpu":
        parts.append(f"; {case.authors / found['cpu']:.1f} times the speed of the authors' code")
    if before is not None:
        of = "cpu" if device == "cpu" else "seconds"
        parts.append(f"; {before[of] / found[of]:.2f} times the speed of the first tree")
    return " ".join(parts).replace(" ;", ";")


def _in_process(name: str, device: str, tree: Path, options: argparse.Namespace) -> dict[str, Any]:
    environment = {"GOMP_SPINCOUNT": "1000"} | os.environ  # as the command line sets it
    threads = str(options.threads)
    environment |= {"OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads, "PYTHONPATH": str(tree / "src")}
    words = [sys.executable, __file__, "--one", name, "--device", device, "--threads", threads]
    words += ["--data", str(options.data)] if options.data else []
    words += ["--profile"] if options.profile else []
    for setting in options.set or ():
        words += ["--set", setting]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


if __name__ == "__main__":
    main()
