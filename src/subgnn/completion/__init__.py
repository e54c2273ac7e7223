"""Complete subgraphs: rank the nodes of the graph by how likely they are missing members of a subgraph."""
