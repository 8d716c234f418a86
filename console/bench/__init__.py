"""bench: how fast this machine is with this store, measured on a store of its own."""
