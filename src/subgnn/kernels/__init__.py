"""Compiled loops over CSR arrays: plain arrays in, plain arrays out, no Python objects and no N x N arrays.

A graph is ``offsets`` (N + 1, int64) and ``neighbors`` (int32, each row sorted); a family of node sets is a
:class:`~subgnn.ragged.Ragged` whose rows are sorted and free of repeats. The kernels trust their input: it is checked
once, where data enters the library.

Results are a function of the input alone, whatever the number of threads: work is split by source or by subgraph, and
random draws are keyed by their purpose, never by the thread that makes them. Numba caches the compiled code on disk
beside the package, or in ``NUMBA_CACHE_DIR``.
"""
