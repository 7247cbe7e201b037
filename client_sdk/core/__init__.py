"""What every room of the device may use: errors, limits, time, randomness, wire."""
