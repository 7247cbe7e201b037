"""The collector: receives perturbed reports, tallies them, answers with intervals."""
