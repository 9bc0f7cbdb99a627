"""Routes of lists of evaluations, and of what they are lists of: models and datasets."""
