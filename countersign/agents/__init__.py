"""The drafting and grading agents: the one place where deepagents and LangChain live."""
