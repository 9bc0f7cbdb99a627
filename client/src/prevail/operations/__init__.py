"""What can be asked of the service, each once for both clients."""
