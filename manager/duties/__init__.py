"""Background work that one node at a time does for all: who does what, and how it is done."""
