"""Lexicons and word vectors."""
