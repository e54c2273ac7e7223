"""Fit a network, keep what it learned, and say how well it does."""
