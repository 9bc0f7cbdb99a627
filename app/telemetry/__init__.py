"""What those who run the service see: metrics for Prometheus, traces for OpenTelemetry, losses of the database."""
