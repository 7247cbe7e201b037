"""What runs in a bundle before the application does, by rthooks.dat beside this folder."""
