"""The commands of `hodyn` with their arguments; what they do is imported when they run."""
