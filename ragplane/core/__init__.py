"""The ground everyone stands on: configuration, errors, schema, models, telemetry, tokens."""
