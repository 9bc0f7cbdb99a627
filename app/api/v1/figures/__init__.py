"""Routes of figures, and of pages that have them."""
