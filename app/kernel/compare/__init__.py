"""Several runs, models or datasets: differences, tests, rankings."""
