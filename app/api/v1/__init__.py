"""HTTP: what is asked in JSON, what is answered in JSON, nothing computed."""
