"""MLflow: an evaluator, and a gate before its registry. What is here needs `mlflow`, and nothing else imports it."""
