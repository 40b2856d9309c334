"""runjob.run(): makes its command, starts the ranks, and returns their results. Also has the rendezvous of init(comm=...)."""
