"""From a metric and a run to its limits."""
