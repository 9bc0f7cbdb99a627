"""Figures of inputs that are more than classes: clusters, rankings, regions and answers."""
