"""musterd: durable jobs under leases, and a crew that grows and shrinks with the queue."""

__version__ = "0.1.0"
