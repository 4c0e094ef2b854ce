"""Libraries and models behind small protocols; the only place with heavy imports."""
