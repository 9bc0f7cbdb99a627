"""What a user has, in memory or in a file, as the body of a request."""
