"""Channels of SubGNN: how anchors are sampled, and how similar a component is to them."""
