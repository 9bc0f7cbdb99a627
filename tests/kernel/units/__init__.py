"""Rankings of queries, and other data of independent units."""
