"""Input formats of published NER models."""
