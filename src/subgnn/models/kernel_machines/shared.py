"""Arrays that many fits share, because they depend on the graph and the nodes of subgraphs alone.

By default the latest ones are kept in memory. With :func:`share_views`, each is a file in a scratch folder: one process
computes it while others wait, and all map it. Processes that are given the same folder so compute everything once.
"""

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from subgnn.errors import DataError, DataWarning
from subgnn.parallel.locks import wait_for_lock
from subgnn.parallel.memory import share
from subgnn.storage.arrays import Arrays, Format, encode_arrays, read_arrays, write_parts

_KIND = Format("subgnn-shared", "file of shared arrays", "subgnn train writes them while it runs", "remove the folder")


class SharedArrays:
    """Arrays by a key: in a fifth of the memory limit, or in files."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Arrays, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.folder: Path | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is shared, so that there is no need to make a key."""
        return not self._kept and self.folder is None

    def get(self, key: str, compute: Callable[[], Arrays], *, keep: bool = True) -> Arrays:
        """The arrays of a key, from memory or a file, else computed; ``keep`` leaves them there for others."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        if self.folder is not None and (keep or self._path(key).exists()):
            found, size = self._from_file(key, compute)
        else:
            found = compute()
            size = sum(array.nbytes for array in found.values())
        if keep or not size:
            with self._lock:
                self._kept[key] = found, size
                while sum(size for _, size in self._kept.values()) > share(0.2):
                    self._kept.popitem(last=False)
        return found

    def has(self, key: str) -> bool:
        return key in self._kept or (self.folder is not None and self._path(key).exists())

    def remove(self, key: str) -> None:
        """Forget the arrays of a key, and remove their file; processes that have mapped it may go on reading."""
        with self._lock:
            self._kept.pop(key, None)
        if self.folder is not None:
            for path in (self._path(key), self._path(key).with_suffix(".safetensors.lock")):
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return (self.folder or Path()) / f"{key}.safetensors"

    def _from_file(self, key: str, compute: Callable[[], Arrays]) -> tuple[Arrays, int]:
        """The arrays, and how much memory they take: none if they are mapped."""
        path = self._path(key)
        if not path.exists():
            with wait_for_lock(path):
                if not path.exists():
                    found = compute()
                    try:
                        write_parts(path, encode_arrays(found, _KIND), sync=False)
                    except (DataError, OSError) as error:
                        what = f"{path.parent}: cannot be written ({error}); every process computes this for itself"
                        warnings.warn(what, DataWarning, stacklevel=3)
                        return found, sum(array.nbytes for array in found.values())
        # Its checksum is not compared: this run wrote it, and comparing costs each process a reading.
        return read_arrays(path, _KIND, mapped="r", verify=False).arrays, 0


SHARED = SharedArrays()
"""What the fits of this process share."""


@contextmanager
def share_views(folder: Path | None) -> Iterator[None]:
    """Share arrays with the processes that use the same folder, until the end of the block; None changes nothing.

    The folder is scratch space: the caller makes it and removes it.
    """
    before = SHARED.folder
    SHARED.folder = before if folder is None else folder
    try:
        yield
    finally:
        SHARED.folder = before
