"""Reading configuration and catalog anew while the node runs."""
