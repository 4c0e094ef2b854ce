"""Files and folders: reading streams, atomic writing, checkpoints of interrupted runs, locks."""
