"""Data of a user, in memory or in a file, as the body of a request."""
