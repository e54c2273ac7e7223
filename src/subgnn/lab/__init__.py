"""The laboratory, which reproduces papers: suites of runs, tuning, and the published datasets."""
