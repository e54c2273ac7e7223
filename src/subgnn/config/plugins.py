"""Models and channels from other packages, which a recipe names by an entry point, or as ``package.module:NAME``.

Somebody else's run may name a plug-in, too, and opening it must not import code that the user did not choose. Who
installs a package chooses its entry points. Any other module is imported only if the user allows it: in a recipe of
their own, with ``--plugin``, or in the environment variable ``SUBGNN_PLUGINS``, which processes that we start inherit.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Literal

from subgnn.errors import UserError, choices, excerpt

VARIABLE = "SUBGNN_PLUGINS"
Group = Literal["subgnn.models", "subgnn.channels"]
_REFERENCE = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*)")


def allow_plugin(name: str) -> None:
    """Allow a module to be imported for a plug-in; the name may be that of the module or of the plug-in itself."""
    module = name.partition(":")[0]
    if _REFERENCE.fullmatch(f"{module}:NAME") and module not in _allowed():
        os.environ[VARIABLE] = ",".join([*_allowed(), module])


def allow_plugins(recipe: Mapping[str, Any]) -> None:
    """Allow the plug-ins that a user's own recipe names; its content is not checked yet."""
    channels = recipe.get("channels")
    entries = [one for one in channels if isinstance(one, Mapping)] if isinstance(channels, (list, tuple)) else []
    for name in (recipe.get("method"), *(one.get("kind") for one in entries)):
        if isinstance(name, str) and is_plugin(name):
            allow_plugin(name)


def is_plugin(name: str) -> bool:
    """Whether a name has the form ``package.module:NAME``."""
    return _REFERENCE.fullmatch(name) is not None


def load_plugin(group: Group, name: str, known: list[str], *, what: str, where: str) -> Any:
    """The object that a recipe or a checkpoint names, if the user has allowed it."""
    from importlib.metadata import EntryPoint, entry_points  # not needed without plug-ins

    offered = {entry.name: entry for entry in entry_points(group=group)}
    reference = _REFERENCE.fullmatch(name)
    entry = offered.get(name) or next((one for one in offered.values() if one.value == name), None)
    if entry is None and reference is None:
        hint = f"{choices(name, [*known, *offered])}; or install the package that has it as an entry point of {group}"
        raise UserError(f"{what} is {excerpt(name)}", where=where, hint=hint)
    if entry is None and reference and not any(f"{reference['module']}.".startswith(f"{one}.") for one in _allowed()):
        hint = f"if you trust it, add --plugin {reference['module']} or set {VARIABLE}={reference['module']}"
        raise UserError(f"{what} is {excerpt(name)}, which is not part of subgnn", where=where, hint=hint)
    try:
        return (entry or EntryPoint(name, name, group)).load()
    except (ImportError, AttributeError) as error:
        problem = f"{what} is {excerpt(name)}, which cannot be imported ({error})"
        raise UserError(problem, where=where, hint="install the package that has it, or add it to PYTHONPATH") from None


def _allowed() -> list[str]:
    return [name.strip().partition(":")[0] for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
