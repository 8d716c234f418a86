"""What `musterd doctor` checks: facts are gathered at the edges, pure functions judge them."""
