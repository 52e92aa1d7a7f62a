"""The HTTP face of the encoders, in three dialects: OpenAI, TEI, Cohere."""
