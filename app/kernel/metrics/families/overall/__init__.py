"""The whole matrix in one number."""
