"""Graphs, subgraphs and datasets, and the readers, generators and converters that make them."""
