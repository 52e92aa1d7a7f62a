"""One reader for each format: bytes in, a ParsedDocument out."""
