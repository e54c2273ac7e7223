"""Work over processes, threads and machines: engines, locks, interrupts, limits of memory, progress."""
