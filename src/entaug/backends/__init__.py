"""Models and linguistic resources behind protocols."""
