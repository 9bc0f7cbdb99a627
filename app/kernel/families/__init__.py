"""The metrics, one file per idea. Families do not import each other: what two of them need stands on the table."""
