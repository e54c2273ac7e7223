"""Docstrings as mkdocstrings reads them: an extension of griffe."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([^`]+)`")


class PlainDocstrings(griffe.Extension):
    """Names in the place of Sphinx's roles, and examples as the section that the reader of docstrings knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text of one docstring, before it is parsed."""
        if obj.docstring is not None:
            text = _ROLE.sub(
                lambda found: f"`{found[2].rpartition('.')[2] if found[1] else found[2]}`", obj.docstring.value
            )
            obj.docstring.value = re.sub(r"^(\s*)Example:$", r"\1Examples:", text, flags=re.MULTILINE)
