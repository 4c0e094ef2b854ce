"""A tagger behind HTTP, as the ML backend of an annotation tool, that is trained anew as sentences are annotated."""
