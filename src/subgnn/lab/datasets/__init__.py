"""The published datasets: their catalog, and builders of the real ones from primary sources."""
