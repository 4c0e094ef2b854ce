"""Dependency and constituency parsers."""
