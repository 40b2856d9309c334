"""One rank of a module with Horovod's interface: --module runjob.torch, or horovod.torch for Horovod itself."""

import importlib

import torch
import torch_loop


class Horovod:
    def __init__(self, module):
        self.hvd = importlib.import_module(module)
        self.hvd.init()
        self.rank, self.size = self.hvd.rank(), self.hvd.size()
        package = importlib.import_module(module.partition(".")[0])
        self.library = f"{module} {package.__version__}, torch {torch.__version__}"

    def run(self, op, slot):
        if op == "barrier":
            return self.hvd.barrier()
        return self.call(op, "", slot)

    def start(self, op, slot):
        return self.call(op, "_async", slot)

    def finish(self, op, slot, handle):
        result = self.hvd.synchronize(handle)
        return result[0] if isinstance(result, tuple) else result  # an alltoall's may come with what each rank sent

    def call(self, op, form, slot):
        name = f"{op}{form}_" if op in torch_loop.IN_PLACE else f"{op}{form}"
        function = getattr(self.hvd, name, None)
        if function is None:
            raise torch_loop.Unavailable(f"{self.hvd.__name__} has no {name}")
        if op == "broadcast":
            return function(slot.input, slot.root, name=slot.name)
        if op in ("allreduce", "reducescatter"):
            return function(slot.input, name=slot.name, op=self.hvd.Sum)
        return function(slot.input, name=slot.name)

    def barrier(self):
        self.hvd.barrier()

    def of_rank_0(self, number):
        tensor = torch.tensor([number])
        self.hvd.broadcast_(tensor, 0, name="iterations")
        return int(tensor)


def main():
    arguments = torch_loop.parse_arguments()
    api = Horovod(arguments.module)
    torch_loop.measure(api, arguments)
    api.barrier()
    api.hvd.shutdown()


if __name__ == "__main__":
    main()
