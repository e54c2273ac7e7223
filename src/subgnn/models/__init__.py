"""Models: SubGNN, the baselines and ensembles, behind one interface."""
