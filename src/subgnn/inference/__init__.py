"""Open a run or an export; predict, embed, search, explain, complete and evaluate; export."""
