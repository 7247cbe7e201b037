"""What things cost: processor time, waiting, memory, bytes."""
