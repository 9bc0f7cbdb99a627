"""Between the server and the routes: ids, limits, compression, tags, who is gone, a line for the log."""
