"""Laws of the device in TypeScript, which runs as it was built: held against Python's."""
