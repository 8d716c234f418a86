"""http: the daemon's web side. It reads and shows; it never wires, decides or writes.

Import `serving` only where something will listen: the libraries behind it are not small.
"""
