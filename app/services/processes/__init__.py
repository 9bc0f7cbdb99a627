"""Heavy arithmetic and pictures in processes of their own, which can be ended, and how far they are."""
