"""The targets, each with an oracle of its own."""
