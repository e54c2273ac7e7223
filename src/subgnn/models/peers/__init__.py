"""Models that others published after SubGNN: GLASS, SSNP, WLKS and S2N."""
