"""The SDK in the programs that run applications: servers, task queues, bundlers."""
