"""What a device computes for itself by a small public model; nothing of it is sent."""
