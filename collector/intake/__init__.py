"""Which reports are accepted: wire format, validation, keys, back-pressure."""
