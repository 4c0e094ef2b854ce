"""Instruct models: servers with an OpenAI-compatible interface, and GGUF files."""
