"""From the outbox to the collector: schedule, sealing, connections, acknowledgements."""
