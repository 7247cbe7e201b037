"""What people keep: documents, their history, notes on axes, signed links."""
