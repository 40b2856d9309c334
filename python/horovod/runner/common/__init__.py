"""horovod.runner.common: what scripts import from inside of Horovod's launcher."""
