"""Damaged files handed to the readers in a process of their own, which may hang, crash or take all memory."""

from __future__ import annotations

import importlib
import json
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import traceback
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GOOD = ("refused", "read", "unchanged")
"""What may come of a damaged file: refused with one line, read as what it then says, or as it was meant."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one input.

    Args:
        verdict: one of :data:`GOOD`; or ``traceback``, ``not one line``, ``read another content``, ``hang``, ``crash``.
        detail: the error.
    """

    kind: str
    index: int
    verdict: str
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.verdict in GOOD


def run_inputs(
    kinds: Sequence[str],
    *,
    seed: int,
    inputs: int,
    first: int = 0,
    seconds: float = 20,
    memory_gb: float = 4,
    module: str = "tests.fuzz.kinds",
) -> Iterator[Outcome]:
    """Read damaged files of each kind; a process that hangs or dies is replaced, and goes on after that input.

    Args:
        inputs: of each kind, from ``first`` on; an input follows from kind, seed and number alone.
        seconds: an input may take.
        memory_gb: that reading may take beyond what the process has before.
        module: where the kinds are.
    """
    left = [(kind, index) for kind in kinds for index in range(first, first + inputs)]
    while left:
        with _Worker(left, {"seed": seed, "memory_gb": memory_gb, "module": module}) as worker:
            for outcome in worker.outcomes(seconds):
                left.pop(0)
                yield outcome


class _Worker:
    """A process that reads inputs in turn, and tells of each before and after."""

    def __init__(self, inputs: Sequence[tuple[str, int]], options: dict[str, Any]) -> None:
        self._first, self._count = inputs[0], len(inputs)
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        order = {"inputs": list(inputs), "folder": self._folder.name, **options}
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        threads = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}
        places = {"SUBGNN_CACHE": f"{self._folder.name}/cache", "TMPDIR": self._folder.name}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.fuzz.runner import work; work()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **threads, **places, "PYTHONPATH": path},
            cwd=ROOT,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order))
        self._process.stdin.close()
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()
        self._folder.cleanup()

    def outcomes(self, seconds: float) -> Iterator[Outcome]:
        kind, index = self._first
        begun, left = False, self._count
        while left:
            try:
                # Before its first input, the process imports the package and trains a small run.
                line = self._lines.get(timeout=seconds if begun else 300)
            except queue.Empty:
                yield Outcome(kind, index, "hang", f"over {seconds:g} s")
                return
            if not line:
                if self._process.wait():
                    self._errors.seek(0)
                    last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
                    if not begun:
                        raise RuntimeError(f"the process ended before its first input: {last}")
                    yield Outcome(kind, index, "crash", f"exit {self._process.returncode}; {' '.join(last)}")
                return
            found = json.loads(line)
            kind, index, begun = found["kind"], found["index"], True
            if "verdict" in found:
                left -= 1
                yield Outcome(**found)


def work() -> None:
    import numpy as np

    order = json.loads(sys.stdin.read())
    kinds = importlib.import_module(order["module"]).KINDS
    out, sys.stdout = sys.stdout, sys.stderr
    good: dict[str, tuple[Path, bytes, Any]] = {}
    for name in dict.fromkeys(name for name, _ in order["inputs"]):
        folder = Path(order["folder"]) / f"kind{len(good)}"
        folder.mkdir()
        path = kinds[name].make(folder)
        good[name] = (path, path.read_bytes(), kinds[name].read(path))
    limit = _virtual_memory() + int(order["memory_gb"] * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    for name, index in order["inputs"]:
        kind, (path, content, meant) = kinds[name], good[name]
        rng = np.random.default_rng([order["seed"], zlib.crc32(name.encode()), index])
        print(json.dumps({"kind": name, "index": index}), file=out, flush=True)
        damaged = kind.damage(content, rng)
        verdict, detail = ("unchanged", "") if damaged == content else _verdict(kind, path, damaged, meant)
        print(json.dumps({"kind": name, "index": index, "verdict": verdict, "detail": detail}), file=out, flush=True)


def _verdict(kind: Any, path: Path, damaged: bytes, meant: Any) -> tuple[str, str]:
    from subgnn.errors import UserError

    # Another file under the name, as a copy would be: what is remembered of the former one must not count.
    other = path.with_name(path.name + ".new")
    other.write_bytes(damaged)
    other.replace(path)
    try:
        found = kind.read(path)
    except UserError as error:
        return ("refused", "") if "\n" not in str(error) else ("not one line", str(error))
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return "traceback", f"{type(error).__name__}: {str(error)[-300:]} ({Path(place.filename).name}:{place.lineno})"
    if found == meant:
        return "unchanged", ""
    return ("read another content", "") if kind.signed else ("read", "")


def _virtual_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def counts(outcomes: Sequence[Outcome]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.kind, Counter())[outcome.verdict] += 1
    return found
