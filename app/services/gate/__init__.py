"""Gates: put, read, ended, and checked."""
