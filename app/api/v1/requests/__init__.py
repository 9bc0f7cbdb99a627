"""Models of request bodies with examples, one file for each noun."""
