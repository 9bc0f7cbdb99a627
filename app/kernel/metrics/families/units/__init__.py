"""What is computed over independent units: queries with ranked items."""
