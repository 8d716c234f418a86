"""Jobs that are wanted again and again: which slots are due, and the duty that sees to them."""
