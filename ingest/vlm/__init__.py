"""The vision route: which pages a model reads again, at what cost, and which answers are kept."""
