"""web: a node's HTTP API and page. Import `server.serving`, which is large, only if needed."""
