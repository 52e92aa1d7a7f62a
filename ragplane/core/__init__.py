"""The ground everyone stands on: configuration, errors, schema, models, telemetry, tokens."""

import os

# ONNX Runtime reports usage to its maker unless this is set before it is first imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"
