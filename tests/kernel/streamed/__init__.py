"""Data beyond memory."""
