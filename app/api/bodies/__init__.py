"""A body from its bytes to checked values: JSON small and large, and forms with a file."""
