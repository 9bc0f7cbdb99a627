"""Models of request bodies, one file for each noun."""
