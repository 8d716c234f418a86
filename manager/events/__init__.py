"""What the node adds to the log of events, and the feed of those who follow it."""
