"""Parts of benchmarks/scale.py: a graph of any size, and stages measured from outside."""
