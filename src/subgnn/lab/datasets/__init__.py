"""The published datasets: their catalog, their downloads, and builders of the real ones from primary sources."""
