"""Losses and metrics of the tasks, weights of classes, thresholds, and tests of significance."""
