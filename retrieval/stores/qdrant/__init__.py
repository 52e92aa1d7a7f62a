"""The store in Qdrant: on a server over HTTP, or the same engine in this process."""
