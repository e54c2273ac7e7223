"""Many runs compared: hyper-parameter searches and benchmark suites."""
