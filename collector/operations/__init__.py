"""What operators need beside answers: doctor, telemetry, processes, credentials."""
