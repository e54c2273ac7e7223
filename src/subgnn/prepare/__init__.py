"""Components, anchors and similarities of a set of subgraphs, computed before training and kept in a cache."""
