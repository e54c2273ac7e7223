"""The examples of a page of documentation, run as they stand.

A page's fenced blocks are run in order, in one folder that holds a copy of ``examples``:

- ``console``: each line after ``$ `` is a command; what follows, up to the next one, is what it prints. ``subgnn`` runs
  in this process; cat, head, ls and printf run in a shell. A command must succeed, unless ``$ echo $?`` comes after it.
- ``python``: all blocks of a page share their names.
- ``output``: what the ``python`` block before it prints, and after it the warnings of this package.
- ``toml``: a file, whose name is the comment on the first line.

``...`` stands for any text, and runs of white space are equal. Other blocks are not run.
"""

import doctest
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

from subgnn import DataWarning
from subgnn.cli.app import main

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_SHELL = ("cat", "head", "ls", "printf")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text and where it stands."""

    language: str
    text: str
    where: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT)
    return [Block(m[1], m[2], f"{name}:{text.count(chr(10), 0, m.start()) + 1}") for m in _BLOCK.finditer(text)]


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it is said to print."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.replace("\\\n", " ").partition("\n")
        yield line.strip(), shown


@dataclass(slots=True)
class Session:
    """A reader who types what the page says."""

    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    code: int = 0

    def run(self, block: Block) -> None:
        """Run one block."""
        if block.language == "python":
            printed = io.StringIO()
            with redirect_stdout(printed), catch_warnings(record=True) as warned:
                simplefilter("always", DataWarning)
                exec(compile(block.text, block.where, "exec"), self.names)
            ours = [one.message for one in warned if issubclass(one.category, DataWarning)]
            self.printed = printed.getvalue() + "".join(f"DataWarning: {message}\n" for message in ours)
        elif block.language == "output":
            _compare(block.text, self.printed, block.where)
        elif block.language == "toml":
            Path(block.text.splitlines()[0].removeprefix("#").strip()).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            self._console(block)

    def _console(self, block: Block) -> None:
        for line, shown in commands(block):
            where = f"{block.where}: {line}"
            if line == "echo $?":
                _compare(shown, str(self.code), where)
                self.code = 0
                continue
            assert self.code == 0, f"before {where}: exit {self.code}, and the page does not say so"
            words = shlex.split(line, comments=True)
            printed = self._subgnn(words[1:]) if words[0] == "subgnn" else _shell(line, words[0])
            _compare(shown, printed, where)
        assert self.code == 0, f"{block.where}: exit {self.code}, and the page does not say so"

    def _subgnn(self, arguments: list[str]) -> str:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with redirect_stdout(stream), redirect_stderr(stream), catch_warnings():
            simplefilter("ignore", DeprecationWarning)  # of other packages; Python shows them to pytest, not to readers
            self.code = main(arguments)
        return stream.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]


def _shell(line: str, program: str) -> str:
    assert program in _SHELL, f"pages may use {_SHELL} and subgnn, not {program}"
    return subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True).stdout


def _compare(shown: str, printed: str, where: str) -> None:
    checker = doctest.OutputChecker()
    shown, printed = shown.strip() + "\n", printed.strip() + "\n"
    if not checker.check_output(shown, printed, _LIKE):
        raise AssertionError(f"{where}\n--- the page\n{shown}--- printed\n{printed}")
