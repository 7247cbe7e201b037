"""What several benchmarks share: crowds, tallies, pages, sites under load."""
