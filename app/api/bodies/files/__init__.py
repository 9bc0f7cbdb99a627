"""Files of columns, each format read by a module of its own: Parquet, Arrow IPC, CSV and NPZ."""
