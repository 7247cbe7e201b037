"""What every room of the collector may use: configuration, catalog, errors, logs."""
