"""Class weights, decision thresholds, and significance tests."""
