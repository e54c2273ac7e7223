"""Settings that enter a cache key; those added later only if they are set, so that earlier results are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from subgnn.config.settings import ChannelSettings, Recipe

ADDED_LATER = {
    "prepare": (
        "border_anchors",
        "giving",
        "taking",
        "damping",
        "weighted_walks",
        "directed_walks",
        "edge_length",
    ),
    "pretrain": ("weighted",),
    "model": ("hidden_norm",),
    "training": (
        "members",
        "plateau",
        "plateau_factor",
        "select_from",
        "repeats",
        "focal",
        "select_by",
        "threshold",
        "threshold_folds",
        "encode_every",
    ),
    "baseline": (
        "tune_settings",
        "views",
        "kernel",
        "loss",
        "damping",
        "diffusion",
        "push_edges",
        "push_nodes",
        "weighted",
        "directed",
    ),
    "s2n": ("sub_normalized",),
    "message_passing": ("typed", "weighted"),
}
"""Settings, by section, that did not exist when cache keys were first made of the others."""

SECTIONS_ADDED_LATER = (
    "auto",
    "message_passing",
    "wlks",
    "s2n",
    "vectors",
)
"""Sections that did not exist then."""


def section_key(section: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a section that enter a cache key.

    A setting that was added later enters only if it is not at its default, so that earlier results are found.
    """
    defaults = asdict(Recipe())
    later = {name: defaults[section][name] for name in ADDED_LATER.get(section, ())}
    return {name: value for name, value in settings.items() if name not in later or value != later[name]}


def channel_key(channel: ChannelSettings) -> dict[str, Any]:
    """Settings of a channel that enter a cache key; its similarity, which was added later, only if it is set."""
    return {name: value for name, value in asdict(channel).items() if value or name != "similarity"}


def recipe_key(recipe: Recipe) -> dict[str, Any]:
    """Settings of a recipe that enter a cache key: all but its name, note and published number.

    A section that was added later enters only if it is not at its defaults. Of the candidates of a portfolio, those for
    graphs with certain attributes do not enter: predictions of each are kept under a key of their own.
    """
    plain = Recipe()
    unchanged = (name for name in SECTIONS_ADDED_LATER if getattr(recipe, name) == getattr(plain, name))
    left_out = ("name", "note", "published", *unchanged)
    settings = {key: value for key, value in asdict(recipe).items() if key not in left_out}
    if "auto" in settings:
        candidates = [one for one in settings["auto"]["candidates"] if not one.pop("for_graphs_with")]
        settings["auto"] = settings["auto"] | {"candidates": tuple(candidates)}
    settings["channels"] = tuple(channel_key(channel) for channel in recipe.channels)
    return settings | {
        section: section_key(section, settings[section]) for section in ADDED_LATER if section in settings
    }
