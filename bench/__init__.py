"""Benchmarks: `make bench` prints one table, measured in one run on this machine."""
