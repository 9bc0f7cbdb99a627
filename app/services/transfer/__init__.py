"""A project as files, and back."""
