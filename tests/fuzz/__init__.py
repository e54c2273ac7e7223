"""Damaged files for every reader of the package; the small size is a test, the large one is benchmarks/fuzz.py."""
