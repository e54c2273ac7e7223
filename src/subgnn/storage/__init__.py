"""Files: arrays with checksums, JSON and TOML within bounds, and the cache."""
