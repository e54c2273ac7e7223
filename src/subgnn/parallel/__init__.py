"""Work over processes, threads and machines: engines, locks, interrupts, memory limits, progress."""
