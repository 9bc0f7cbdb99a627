"""Models and datasets as a whole, and the removal of many evaluations."""
