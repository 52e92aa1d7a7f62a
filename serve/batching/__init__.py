"""Dynamic batching: what waits is composed into micro-batches when the backend becomes free."""
