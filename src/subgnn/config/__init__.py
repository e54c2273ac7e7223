"""Settings of a run: typed sections, their TOML files, and the recipes of this package."""
