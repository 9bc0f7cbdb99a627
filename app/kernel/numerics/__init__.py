"""Array arithmetic that numpy lacks; nothing here knows metrics."""
