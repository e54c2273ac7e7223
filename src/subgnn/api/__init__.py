"""Trained models in Python: runs, and estimators by scikit-learn's conventions."""
