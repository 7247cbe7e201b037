"""From a recorded value to a charged report: consent, aggregation, the ledger's charge, erasure."""
