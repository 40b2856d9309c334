"""One rank of torch.distributed with Gloo. Its place comes from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."""

import os

import torch
import torch.distributed as dist
import torch_loop


class Gloo:
    def __init__(self):
        dist.init_process_group("gloo")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.library = f"torch {torch.__version__} gloo"

    def _call(self, op, slot, asynchronous):
        if op == "allreduce":
            return dist.all_reduce(slot.input, async_op=asynchronous)
        if op == "broadcast":
            return dist.broadcast(slot.input, slot.root, async_op=asynchronous)
        if op == "allgather":
            return dist.all_gather_into_tensor(slot.output, slot.input, async_op=asynchronous)
        if op == "reducescatter":
            return dist.reduce_scatter_tensor(slot.output, slot.input, async_op=asynchronous)
        if op == "alltoall":
            return dist.all_to_all_single(slot.output, slot.input, async_op=asynchronous)
        return dist.barrier(async_op=asynchronous)

    def run(self, op, slot):
        self._call(op, slot, False)
        return slot.input if op in torch_loop.IN_PLACE else slot.output

    def start(self, op, slot):
        return self._call(op, slot, True)

    def finish(self, op, slot, work):
        work.wait()
        return slot.input if op in torch_loop.IN_PLACE else slot.output

    def barrier(self):
        dist.barrier()

    def of_rank_0(self, number):
        tensor = torch.tensor([number])
        dist.broadcast(tensor, 0)
        return int(tensor)


def main():
    arguments = torch_loop.parse_arguments()
    torch_loop.measure(Gloo(), arguments)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # leaves out Python's end, in which PyTorch may abort (docs/ddp.md); the results are printed


if __name__ == "__main__":
    main()
