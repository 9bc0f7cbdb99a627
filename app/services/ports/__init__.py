"""What the services need from the world outside, and how it fails."""
