"""Telling others of the end of jobs: signed requests, sent until somebody has taken them."""
