"""web: the HTTP API and the page of a node, which read, enqueue, and act on jobs and queue.

Import `server.serving` only if something listens: the libraries behind it are not small.
"""
