"""A tenant on a node: its store, its services and its crew, from opening to closing."""
