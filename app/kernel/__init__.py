"""The arithmetic: pure functions on batches of confusion matrices. Knows numpy and nothing else of the world."""
