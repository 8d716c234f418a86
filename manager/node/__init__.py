"""One node: the daemon, what it says of itself (also to systemd), and how it ends."""
