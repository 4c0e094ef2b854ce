"""Scores of sentences and predictions."""
