"""One evaluation: computed, kept, explained, read back."""
