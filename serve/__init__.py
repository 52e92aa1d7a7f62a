"""One server for encoders: batching, ONNX Runtime, HTTP. Knows nothing of documents."""
