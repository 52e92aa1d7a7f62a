"""Stores, hybrid search, rerank, prompt, citations."""
