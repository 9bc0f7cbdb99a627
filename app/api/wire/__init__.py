"""Layers between the server and the routes: request ids, limits, compression, tags, disconnects, the request log."""
