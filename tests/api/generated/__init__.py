"""Requests that nobody thought of, held against the document of the API."""
