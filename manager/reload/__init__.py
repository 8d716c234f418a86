"""Owns the reload: a new configuration and catalog for a running node, whole or not at all."""
