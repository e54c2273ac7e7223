"""Kernel machines and linear models on views of subgraphs, with and without labels."""
