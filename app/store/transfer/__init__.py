"""All of a project, read and written piece by piece."""
