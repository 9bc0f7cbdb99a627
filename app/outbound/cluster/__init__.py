"""Tasks carried out by other processes and machines. Dask is an extra: it is imported when it is used."""
