"""Figures drawn of rates alone: planes of two rates, and what one rate does to a mean."""
