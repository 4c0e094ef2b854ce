"""Machine translation models."""
