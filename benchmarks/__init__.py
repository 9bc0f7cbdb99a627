"""What the claims about speed rest on; run one with `python -m benchmarks.<name>`."""
