"""Many runs and many tests: rankings, and p-values adjusted for how many there are."""
