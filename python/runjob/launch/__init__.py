"""runjob.run(): the command that it becomes, the ranks that it starts, and what comes back. Also the rendezvous of init(comm=...)."""
