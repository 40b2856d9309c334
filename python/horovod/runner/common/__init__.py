"""horovod.runner.common: the modules that scripts import from the inside of Horovod's launcher."""
