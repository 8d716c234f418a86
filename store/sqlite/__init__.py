"""store.sqlite: the Engine on one SQLite file, or in memory. One daemon a file, many enqueuers."""
