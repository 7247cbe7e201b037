"""What several benchmarks share: crowds, draws, attackers, sites under load."""
