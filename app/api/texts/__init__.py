"""Answers as texts for people: a report for a terminal, Markdown for a pull request, CSV for a spreadsheet."""
