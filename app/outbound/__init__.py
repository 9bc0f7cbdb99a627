"""Speaks to others: requests that the service sends by itself."""
