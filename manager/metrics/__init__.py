"""The node's instruments, and how they are written out for Prometheus."""
