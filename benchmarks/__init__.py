"""What the claims about speed rest on; run one with `python -m benchmarks.<name>`."""

import os

# As in the processes of the service, before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
