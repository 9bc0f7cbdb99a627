"""What the routes are asked: the models of their bodies and examples of each, one file per noun."""
