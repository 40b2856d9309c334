"""Images per second when a network for ImageNet is trained on random images: ResNet-50, unless --model names another.

    python examples/pytorch_synthetic_benchmark.py --no-cuda                    one process
    runjob -np 2 python examples/pytorch_synthetic_benchmark.py --no-cuda       two

Options and output have the names that they have in Horovod's benchmark of this name, so that figures can be put side by side. The images
are made once: nothing but training is measured. Models other than resnet50 come from torchvision, if it is installed.
"""

import argparse
import math
import statistics
import time

import torch
from resnet50 import resnet50
from torch.nn import functional

import runjob.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50", help="a model of torchvision, or resnet50, which is in resnet50.py (default)")
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and step")
    parser.add_argument("--image-size", type=int, default=224, help="pixels of an edge")
    parser.add_argument("--num-warmup-batches", type=int, default=10, help="before anything is measured")
    parser.add_argument("--num-batches-per-iter", type=int, default=10, help="batches whose time is taken together")
    parser.add_argument("--num-iters", type=int, default=10, help="how often it is taken")
    parser.add_argument("--fp16-allreduce", action="store_true", help="gradients travel as 16-bit numbers")
    parser.add_argument("--no-cuda", action="store_true", help="train on the CPU even if there is a GPU")
    return parser.parse_args()


def make_model(name):
    if name == "resnet50":
        return resnet50()
    try:
        from torchvision import models
    except ImportError:
        raise SystemExit(f"--model {name} needs torchvision, which is not installed; resnet50 does not") from None
    if not hasattr(models, name):
        raise SystemExit(f"--model {name}: torchvision has no such model")
    return getattr(models, name)()


def make_step(arguments, device):
    """A function that trains on one batch."""
    model = make_model(arguments.model).to(device)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size()),
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    images = torch.randn(arguments.batch_size, 3, arguments.image_size, arguments.image_size, device=device)
    labels = torch.randint(1000, (arguments.batch_size,), device=device)

    def step():
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def seconds(step, count, device):
    start = time.perf_counter()
    for _ in range(count):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


def main():
    arguments = parse_arguments()
    hvd.init()
    use_cuda = torch.cuda.is_available() and not arguments.no_cuda
    device = torch.device("cuda", hvd.local_rank()) if use_cuda else torch.device("cpu")
    name = "GPU" if use_cuda else "CPU"
    torch.manual_seed(hvd.rank())
    say = print if hvd.rank() == 0 else lambda *words: None

    step = make_step(arguments, device)
    say(f"Model: {arguments.model}")
    say(f"Batch size: {arguments.batch_size}")
    say(f"Number of {name}s: {hvd.size()}")
    say("Running warmup...")
    seconds(step, arguments.num_warmup_batches, device)

    say("Running benchmark...")
    rates = []
    for number in range(arguments.num_iters):
        time_taken = seconds(step, arguments.num_batches_per_iter, device)
        rates.append(arguments.batch_size * arguments.num_batches_per_iter / time_taken)
        say(f"Iter #{number}: {rates[-1]:.1f} img/sec per {name}")

    mean, spread = statistics.fmean(rates), 1.96 * math.sqrt(statistics.pvariance(rates))
    say(f"Img/sec per {name}: {mean:.1f} +-{spread:.1f}")
    say(f"Total img/sec on {hvd.size()} {name}(s): {hvd.size() * mean:.1f} +-{hvd.size() * spread:.1f}")


if __name__ == "__main__":
    main()
