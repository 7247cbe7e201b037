"""What fake devices can do to an answer, and when a tally gives them away.  Pure."""
