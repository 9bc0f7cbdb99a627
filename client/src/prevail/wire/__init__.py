"""What is said to the service and what it answers, without any input or output: both clients share all of it."""
