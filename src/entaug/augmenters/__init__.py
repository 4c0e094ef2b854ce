"""The methods: `base` holds the contract, then one file a family."""
