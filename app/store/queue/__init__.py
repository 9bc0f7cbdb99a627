"""The queue in which work waits, procrastinate's: how something is put there, and who works on it."""
