"""The channels and similarities that recipes may name; to add one, write a module and add a line here."""

from collections.abc import Iterable, Mapping

from subgnn.channels import neighborhood, position, structure
from subgnn.channels.channel import Channel, Similarity
from subgnn.channels.distances import HOPS
from subgnn.channels.neighborhood import CONSTANT, WEIGHT
from subgnn.channels.structure import WARPING
from subgnn.config.plugins import load_plugin
from subgnn.config.settings import ChannelSettings, PrepareSettings
from subgnn.errors import UserError, choices, excerpt

CHANNELS: dict[str, Mapping[str, Channel]] = {
    "position": position.SIDES,
    "neighborhood": neighborhood.SIDES,
    "structure": structure.SIDES,
}
"""Channels by kind and side."""

SIMILARITIES: dict[str, Similarity] = {"hops": HOPS, "warping": WARPING, "weight": WEIGHT, "constant": CONSTANT}
"""Similarities by name."""


def channel_of(settings: ChannelSettings, *, where: str = "recipe", place: str = "channels") -> Channel:
    """The channel named by an entry of ``[[channels]]``; errors mention the file (where) and the entry (place)."""
    sides = CHANNELS.get(settings.kind)
    if sides is None:
        sides = load_plugin("subgnn.channels", settings.kind, list(CHANNELS), what=f"{place}.kind", where=where)
        if not isinstance(sides, Mapping) or not all(isinstance(side, Channel) for side in sides.values()):
            what = f"{place}.kind: the plug-in {excerpt(settings.kind)} is not a channel"
            hint = "a plug-in must provide a dictionary of subgnn.channels.channel.Channel by side"
            raise UserError(what, where=where, hint=hint)
    if settings.side not in sides:
        raise UserError(f"{place}.side is {excerpt(settings.side)}", where=where, hint=choices(settings.side, sides))
    return sides[settings.side]


def similarity_of(
    settings: ChannelSettings, prepare: PrepareSettings, *, where: str = "recipe", place: str = "channels"
) -> Similarity:
    """The similarity of an entry of ``[[channels]]``: the one it names, or its channel's own."""
    channel = channel_of(settings, where=where, place=place)
    usual = channel.similarity if isinstance(channel.similarity, str) else channel.similarity(prepare)
    name, anchors = settings.similarity or usual, channel.anchors
    accepted = [known for known, found in SIMILARITIES.items() if anchors in found.measure]
    if name not in accepted:
        what = f"{place}: the channel {settings.name} does not support the similarity {excerpt(name)}"
        raise UserError(what, where=where, hint=choices(name, accepted))
    return SIMILARITIES[name]


def check_channels(channels: Iterable[ChannelSettings], prepare: PrepareSettings, *, where: str = "recipe") -> None:
    """Refuse channels and similarities that are not in the tables."""
    for i, settings in enumerate(channels):
        similarity_of(settings, prepare, where=where, place=f"channels[{i}]")
