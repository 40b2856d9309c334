"""Trains ResNet-50 as one does on ImageNet: warm-up, mixed precision, checkpoints. The images are synthetic.

    runjob -np 2 python examples/pytorch_imagenet_resnet50.py --mixed-precision bfloat16

    runjob -np 2 python examples/pytorch_imagenet_resnet50.py --image-size 32 --classes 4 --train-images 64 \\
        --val-images 8 --batch-size 8 --warmup-epochs 1 --base-lr 0.001 --epochs 2         in seconds, without a GPU

After each epoch rank 0 writes a checkpoint. A job that is started again with the same options continues after the last one, and computes
what an uninterrupted job computes. Options have the names that they have in Horovod's example of this name. To train on ImageNet itself,
replace make_data() by torchvision.datasets.ImageFolder.
"""

import argparse
import os

import torch
from resnet50 import resnet50
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

import runjob.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train-images", type=int, default=1281167)
    parser.add_argument("--val-images", type=int, default=50000)
    parser.add_argument("--image-size", type=int, default=224, help="pixels of an edge")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--checkpoint-format", default="./checkpoint-{epoch}.pt", help="the name of an epoch's checkpoint")
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and backward pass")
    parser.add_argument("--val-batch-size", type=int, default=32)
    parser.add_argument("--batches-per-allreduce", type=int, default=1, help="backward passes whose gradients make one step")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--base-lr", type=float, default=0.0125, help="learning rate for one backward pass of one rank")
    parser.add_argument("--warmup-epochs", type=float, default=5)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--wd", type=float, default=0.00005, help="weight decay")
    parser.add_argument("--mixed-precision", choices=["bfloat16", "float16"], help="the type of most activations")
    parser.add_argument("--fp16-allreduce", action="store_true", help="gradients travel as 16-bit numbers")
    parser.add_argument("--no-cuda", action="store_true", help="train on the CPU even if there is a GPU")
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


class SyntheticImages(Dataset):
    """Images that can be learned: each class has a pattern, and each image adds noise of its own to it."""

    def __init__(self, count, size, classes, first):
        self.count, self.size, self.first = count, size, first
        self.patterns = torch.randn(classes, 3, 4, 4, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % len(self.patterns)
        noise = torch.Generator().manual_seed(self.first + index)
        pattern = functional.interpolate(self.patterns[label : label + 1], size=(self.size, self.size))[0]
        return pattern + 0.5 * torch.randn(3, self.size, self.size, generator=noise), label


def make_data(arguments):
    """Loaders that give each rank its share of the images: for training, and for validation."""
    sets = [
        SyntheticImages(arguments.train_images, arguments.image_size, arguments.classes, first=0),
        SyntheticImages(arguments.val_images, arguments.image_size, arguments.classes, first=arguments.train_images),
    ]
    samplers = [DistributedSampler(data, hvd.size(), hvd.rank(), shuffle=data is sets[0], seed=arguments.seed) for data in sets]
    batches = [arguments.batch_size, arguments.val_batch_size]
    return [DataLoader(data, batch_size=batch, sampler=sampler) for data, batch, sampler in zip(sets, batches, samplers)]


class Trainer:
    def __init__(self, arguments, device):
        self.arguments = arguments
        self.device = device
        self.model = resnet50(arguments.classes).to(device)
        optimizer = torch.optim.SGD(
            self.model.parameters(), lr=arguments.base_lr, momentum=arguments.momentum, weight_decay=arguments.wd
        )
        self.optimizer = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=self.model.named_parameters(),
            compression=hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none,
            backward_passes_per_step=arguments.batches_per_allreduce,
        )
        # float16 has so small a range that gradients of the loss itself would vanish; bfloat16 has float32's.
        self.scaler = torch.amp.GradScaler(device.type, enabled=arguments.mixed_precision == "float16")

    def forward(self, images):
        if not self.arguments.mixed_precision:
            return self.model(images)
        with torch.autocast(self.device.type, dtype=getattr(torch, self.arguments.mixed_precision)):
            return self.model(images).float()

    def set_learning_rate(self, epoch):
        """From base_lr to base_lr times the number of batches in a step, during the warm-up; later a tenth after epochs 30, 60 and 80."""
        batches = hvd.size() * self.arguments.batches_per_allreduce
        warmup = self.arguments.warmup_epochs
        if epoch < warmup:
            factor = 1 + (batches - 1) * epoch / warmup
        else:
            factor = batches * 0.1 ** sum(epoch >= end for end in (30, 60, 80))
        for group in self.optimizer.param_groups:
            group["lr"] = self.arguments.base_lr * factor

    def train(self, epoch, loader):
        """One epoch; returns the mean loss of all ranks."""
        self.model.train()
        loader.sampler.set_epoch(epoch)  # another order in each epoch
        total, passes = torch.zeros(()), self.arguments.batches_per_allreduce
        batches = len(loader) - len(loader) % passes  # whole steps only, as many on each rank
        for number, (images, labels) in zip(range(batches), loader):
            if number % passes == 0:
                self.optimizer.zero_grad()
                self.set_learning_rate(epoch + number / batches)
            loss = functional.cross_entropy(self.forward(images.to(self.device)), labels.to(self.device))
            self.scaler.scale(loss / passes).backward()
            total += loss.detach().cpu()
            if number % passes == passes - 1:
                self.step()
        return hvd.allreduce(total / batches, name="training loss").item()

    def step(self):
        """The scaler looks for infinities in gradients that are those of all ranks: all of them skip the same steps."""
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def average_statistics(self):
        """Each rank's batch normalisation has seen other images. Validation and checkpoints use the mean of all ranks."""
        statistics = [buffer for buffer in self.model.buffers() if buffer.is_floating_point()]
        hvd.grouped_allreduce_(statistics, name="statistics")

    def validate(self, loader):
        """Mean loss and accuracy over all ranks' images."""
        self.model.eval()
        sums = torch.zeros(3)
        with torch.no_grad():
            for images, labels in loader:
                scores, labels = self.forward(images.to(self.device)), labels.to(self.device)
                loss = functional.cross_entropy(scores, labels, reduction="sum")
                sums += torch.tensor([loss.item(), (scores.argmax(dim=1) == labels).sum().item(), len(labels)])
        loss, right, count = hvd.allreduce(sums, op=hvd.Sum, name="validation").tolist()
        return loss / count, right / count

    def save(self, epoch):
        """Rank 0 alone writes. The file gets its name when it is complete: a job that is killed here leaves no half of one."""
        hvd.check()  # what lies on a GPU is valid only when all operations have ended without an error
        hvd.assert_same(self.model)  # one copy stands for all
        if hvd.rank() != 0:
            return
        file = self.arguments.checkpoint_format.format(epoch=epoch)
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "scaler": self.scaler.state_dict()}
        torch.save(state, f"{file}.part")
        os.replace(f"{file}.part", file)

    def resume(self):
        """Loads the last checkpoint on rank 0 and gives it to all ranks. Returns the number of epochs that are done."""
        done, scaler = 0, self.scaler.state_dict()
        if hvd.rank() == 0:
            files = {epoch: self.arguments.checkpoint_format.format(epoch=epoch) for epoch in range(1, self.arguments.epochs + 1)}
            done = max((epoch for epoch, file in files.items() if os.path.exists(file)), default=0)
            if done:
                state = torch.load(files[done], map_location=self.device, weights_only=True)
                self.model.load_state_dict(state["model"])
                self.optimizer.load_state_dict(state["optimizer"])
                scaler = state["scaler"]
        done, scaler = hvd.broadcast_object((done, scaler), root_rank=0, name="epochs done")
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(self.optimizer, root_rank=0)
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(scaler)
        return done


def main():
    arguments = parse_arguments()
    hvd.init()
    use_cuda = torch.cuda.is_available() and not arguments.no_cuda
    device = torch.device("cuda", hvd.local_rank()) if use_cuda else torch.device("cpu")
    torch.manual_seed(arguments.seed)
    say = print if hvd.rank() == 0 else lambda *words: None

    training, validation = make_data(arguments)
    trainer = Trainer(arguments, device)
    done = trainer.resume()
    say(f"ResNet-50 with {hvd.size()} ranks on {device.type}, " + (f"continuing after epoch {done}" if done else "from the beginning"))
    for epoch in range(done, arguments.epochs):
        loss = trainer.train(epoch, training)
        trainer.average_statistics()
        val_loss, accuracy = trainer.validate(validation)
        say(f"epoch {epoch + 1}: loss {loss:.4f}, validation loss {val_loss:.4f}, accuracy {accuracy:.4f}")
        trainer.save(epoch + 1)


if __name__ == "__main__":
    main()
