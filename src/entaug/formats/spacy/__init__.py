"""spaCy training formats."""
