"""Measures of clusterings: against known classes, and by the shape of the clusters."""
