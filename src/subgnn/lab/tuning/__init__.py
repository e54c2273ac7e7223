"""Searches for settings: spaces, trials and studies, in this process or several."""
