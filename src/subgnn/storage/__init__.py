"""Files: one codec for arrays, bounded JSON and TOML, atomic writes, and the cache."""
