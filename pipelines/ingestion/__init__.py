"""From files to a store, exactly once, by claims of the ledger."""
