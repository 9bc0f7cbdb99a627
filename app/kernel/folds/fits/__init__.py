"""What is fitted to folded samples: their orders go by again for each step."""
