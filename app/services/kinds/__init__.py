"""What the services need of each kind of input that is more than a matrix of classes."""
