"""Components, anchors and similarities of a set of subgraphs, computed before training, and their cache."""
