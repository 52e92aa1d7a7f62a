"""Compositions of the rooms: ingestion, answering, evaluation."""
