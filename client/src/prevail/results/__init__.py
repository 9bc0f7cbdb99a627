"""What the service answers, as objects over its JSON: values by name, tables, and reports to read."""
