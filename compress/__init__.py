"""Context under a token budget."""
