"""The HTTP server of a node: connections, who may ask, and how answers and refusals look."""
