"""Open a run or an export; predict, embed and evaluate; files of subgraphs; export."""
