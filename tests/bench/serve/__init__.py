"""Our server beside its peers. Run by `make bench-serve`."""
