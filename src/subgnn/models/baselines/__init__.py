"""The baselines: the paper's (section 5, appendix D), and simple classifiers of nodes, statistics and walks."""
