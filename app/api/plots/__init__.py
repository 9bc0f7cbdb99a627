"""Figures as Vega-Lite specifications, made of what the service answers."""
