"""Archives of a small dataset, as its files would be downloaded."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import Any

EDGES = b"0 1\n1 2\n2 3\n"
SUBGRAPHS = b"0-1\tA\ttrain\n1-2\tB\tval\n2-3\tA\ttest\n"


def zip_of(files: dict[str, bytes]) -> bytes:
    """Files as a zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, body in files.items():
            packed.writestr(name, body)
    return out.getvalue()


def tar_of(files: dict[str, bytes], *extra: tarfile.TarInfo, mode: Any = "w:gz") -> bytes:
    """Files as a tar, gzipped by default; and entries that are no files, after them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
        for info in extra:
            tar.addfile(info)
    return out.getvalue()


def dataset_files(folder: str) -> dict[str, bytes]:
    """A dataset below a folder of the archive, '' or with a slash behind."""
    return {f"{folder}edge_list.txt": EDGES, f"{folder}subgraphs.pth": SUBGRAPHS}
