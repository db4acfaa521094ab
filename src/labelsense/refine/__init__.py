"""Step 4: candidates from several sources, judged by what was learned on rows out of sample."""
