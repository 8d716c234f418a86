"""The HTTP server of a node: connections, who may call, and how answers and refusals look."""
