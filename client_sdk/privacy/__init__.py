"""What people are told of their privacy: it may know metrics and caps, no file and no clock."""
