"""PyTorch's own NCCL backend in the same setting, without runjob's collectives: whether the setting works at all."""

import os

import torch
import torch.distributed


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=size)
    tensor = torch.full((1000,), float(rank + 1), device=device)
    torch.distributed.all_reduce(tensor)
    assert tensor.eq(size * (size + 1) / 2).all(), tensor
    torch.cuda.synchronize()
    print(f"rank {rank}: torch.distributed has summed over {size} ranks on {torch.cuda.get_device_name(device)}", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
