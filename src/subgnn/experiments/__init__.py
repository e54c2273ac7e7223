"""Many runs compared: a quick look at a dataset, hyper-parameter searches, and benchmark suites."""
