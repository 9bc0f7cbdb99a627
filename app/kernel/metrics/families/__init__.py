"""One module per idea; every metric is one function and one card."""
