"""ui: the routes of the live page: what its views show, what its forms do, who is signed in."""
