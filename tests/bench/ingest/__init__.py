"""Benchmarks of ingestion."""
