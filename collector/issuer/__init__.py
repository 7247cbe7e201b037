"""Who gives out one-time tokens: a process of its own, which knows no report and no store."""
