"""Open a run or an export; predict, embed and evaluate; answers about tables of subgraphs; export."""
