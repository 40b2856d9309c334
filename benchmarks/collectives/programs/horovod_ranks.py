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
        return self.finish(op, slot, self.start(op, slot))

    def start(self, op, slot):
        hvd = self.hvd
        if op == "allreduce":
            return hvd.allreduce_async_(slot.input, name=slot.name, op=hvd.Sum)
        if op == "broadcast":
            return hvd.broadcast_async_(slot.input, slot.root, name=slot.name)
        submit = getattr(hvd, f"{op}_async", None)
        if submit is None:
            raise torch_loop.Unavailable(f"{hvd.__name__} has no {op}_async")
        if op == "reducescatter":
            return submit(slot.input, name=slot.name, op=hvd.Sum)
        return submit(slot.input, name=slot.name)

    def finish(self, op, slot, handle):
        result = self.hvd.synchronize(handle)
        return result[0] if isinstance(result, tuple) else result  # an alltoall's may come with what each rank sent

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
