"""The device's database: ledger, outbox, secret and trusted clock, in one transaction."""
