"""What all experiments have in common: file, checks, plan, journal, workers, statistics, tables. It knows no kind."""
