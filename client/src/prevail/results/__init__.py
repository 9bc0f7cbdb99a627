"""Answers of the service as objects over their JSON: values by name, tables, and reports."""
