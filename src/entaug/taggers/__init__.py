"""Sequence and span taggers."""
