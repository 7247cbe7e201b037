"""Commands that print the numbers this project states.  One module a question."""
