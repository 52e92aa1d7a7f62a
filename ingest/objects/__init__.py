"""Documents in an object store that speaks S3."""
