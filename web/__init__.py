"""web: the HTTP API and the page of a node.

Import `server.serving` only where something will listen: the libraries behind it are not small.
"""
