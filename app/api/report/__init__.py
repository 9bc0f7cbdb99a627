"""Documents as pages: the one template of them, its styles, and pictures inside it."""
