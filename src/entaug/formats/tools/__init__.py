"""Formats of annotation tools."""
