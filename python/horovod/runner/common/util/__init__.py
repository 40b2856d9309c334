"""horovod.runner.common.util: the modules that scripts outside of Horovod import. runjob itself uses none of them."""
