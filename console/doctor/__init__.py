"""What `musterd doctor` looks at: facts are gathered at the edges, pure functions judge them."""
