"""Independent units: queries with their ranked items, and pairs of overlapping sets such as regions or answers."""
