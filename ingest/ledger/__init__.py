"""What ingestion knows of every document: what to do, who does it, what came of it."""
