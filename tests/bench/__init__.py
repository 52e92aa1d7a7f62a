"""Benchmarks. Run by `make bench`; never part of the tests."""
