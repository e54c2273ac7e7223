"""Node vectors: random, from files, or pretrained with GIN or GraphSAINT."""
