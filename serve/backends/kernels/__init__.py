"""Compiled parts of a forward pass on the CPU, written in Python and compiled by numba."""
