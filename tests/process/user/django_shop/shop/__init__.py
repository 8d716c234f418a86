"""A shop on Django, whose tasks musterd runs."""
