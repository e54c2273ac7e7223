"""Archives of files."""

import io
import tarfile
import zipfile
from typing import Any


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
