"""One node: the daemon, what it says of itself, and how it ends."""
