"""What runs a model: one small trait, and a backend for each library behind it."""
