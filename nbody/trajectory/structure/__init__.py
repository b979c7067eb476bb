"""What is in the file of a run, and how any file is opened."""
