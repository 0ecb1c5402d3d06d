"""What runs in the place of a tool, in the agent's own process."""
