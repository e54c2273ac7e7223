"""What benchmarks/kernels.py times: workloads, and for each kernel the tools one would use instead."""
