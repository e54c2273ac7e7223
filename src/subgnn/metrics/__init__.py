"""Class weights and the focal loss, decision thresholds, and significance tests."""
