"""Real datasets, built from the files their sources publish."""
