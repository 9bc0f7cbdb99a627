"""Answers for people: one document of each answer, which texts, Markdown, CSV and pages are written of."""
