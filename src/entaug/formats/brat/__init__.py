"""The brat standoff format."""
