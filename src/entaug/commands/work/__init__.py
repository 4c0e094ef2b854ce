"""The functions behind the commands."""
