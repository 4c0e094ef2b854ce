"""Models, parsers, translators and lexicons behind protocols.

`entaug.backends.protocols` is the contract, `entaug.backends.resolve` finds a backend by name.
"""
