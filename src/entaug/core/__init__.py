"""The core: sentences and mentions, the operations that rewrite them, tags, spacing, words and languages."""
