"""The command line. What the commands do is the runner's; here they are read, shown and worded."""
