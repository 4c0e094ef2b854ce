"""Scores of predictions (span F1, significance) and of sentences (likelihood, similarity)."""
