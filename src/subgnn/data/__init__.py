"""The data model, and everything that fills it."""
