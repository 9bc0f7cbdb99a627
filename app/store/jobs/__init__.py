"""Jobs in Postgres, and the queue in which they wait."""
