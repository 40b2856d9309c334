"""horovod.runner.util: the module that scripts outside of Horovod import, threads."""
