"""The ground everyone stands on: configuration, errors, schema, models, telemetry, tokens."""

__version__ = "0.1.0"
