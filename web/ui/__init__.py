"""ui: behind the live page: what its views read, what its forms do, who is signed in."""
