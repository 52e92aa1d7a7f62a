"""Files to pages to triage to text to chunks to vectors."""
