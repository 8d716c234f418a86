"""What other frameworks plug in. Nothing here is imported by musterd itself."""
