"""Finding out what really happened to an operation whose outcome is not known."""
