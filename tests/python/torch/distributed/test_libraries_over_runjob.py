"""Unmodified programs of PyTorch's libraries, with mixed precision, clipping and accumulation: with --torch-backend runjob
they end with the model, bit for bit, that they end with over Gloo. tests/docs runs the scripts of the manual on two hosts.
"""

import importlib.util

import pytest
from installed_ranks import run

BEGIN = """
import hashlib, os, time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

def data():
    torch.manual_seed(0)
    x = torch.randn(192, 10)
    return x, x.sum(dim=1, keepdim=True)

def end(model):
    tensors = [parameter.detach() for parameter in model.parameters()]
    bits = b"".join(tensor.contiguous().view(torch.uint8).numpy().tobytes() for tensor in tensors)
    kinds = sorted({type(dist.group.WORLD).__name__, type(dist.group.WORLD._get_backend(torch.device("cpu"))).__name__})
    print("model", hashlib.sha256(bits).hexdigest()[:16], "over", *kinds, flush=True)
    dist.destroy_process_group()
    time.sleep(0.5)  # PyTorch's Gloo has threads that end by themselves
"""
ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, mixed_precision="bf16", gradient_accumulation_steps=2)
x, y = data()
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
loader = DataLoader(TensorDataset(x, y), batch_size=8)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.05), loader)
syncs = 0
for features, targets in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(features), targets)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            syncs += 1
            accelerator.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
gathered = accelerator.gather_for_metrics(loss.detach().reshape(1))
assert syncs == len(loader) // 2 and len(gathered) == 2
print("loss", gathered.tolist())
end(model)
"""
FABRIC = """
from lightning_fabric import Fabric
fabric = Fabric(accelerator="cpu", strategy="ddp", precision="bf16-mixed", devices=2, num_nodes=1)
fabric.launch()
x, y = data()
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.05))
loader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, y), batch_size=8))
for number, (features, targets) in enumerate(loader):
    is_last = number % 2 == 1
    with fabric.no_backward_sync(model, enabled=not is_last):
        loss = torch.nn.functional.mse_loss(model(features), targets)
        fabric.backward(loss)
    if is_last:
        fabric.clip_gradients(model, optimizer, max_norm=0.5)
        optimizer.step()
        optimizer.zero_grad()
print("loss", fabric.all_gather(loss.detach()).tolist(), fabric.broadcast({"from": fabric.global_rank}))
fabric.barrier()
end(model)
"""
LIGHTNING = """
import pytorch_lightning as lightning

class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))

    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

x, y = data()
model = Regression()
trainer = lightning.Trainer(
    accelerator="cpu", strategy="ddp", devices=2, num_nodes=1, precision="bf16-mixed", accumulate_grad_batches=2, gradient_clip_val=0.5,
    max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, DataLoader(TensorDataset(x, y), batch_size=8))
print("loss", trainer.callback_metrics["loss"].item())
end(model)
"""
TRAINER = """
import sys
from transformers import Trainer, TrainingArguments

class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))

    def forward(self, x, labels=None):
        y = self.layers(x)
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}

x, y = data()
arguments = TrainingArguments(
    output_dir=sys.argv[1], use_cpu=True, bf16=True, gradient_accumulation_steps=2, max_grad_norm=0.5, per_device_train_batch_size=8,
    num_train_epochs=1, learning_rate=0.05, optim="sgd", lr_scheduler_type="constant", save_strategy="no", logging_strategy="no",
    ddp_find_unused_parameters=False, report_to="none", disable_tqdm=True)
trainer = Trainer(Regression(), arguments, train_dataset=[{"x": a, "labels": b} for a, b in zip(x, y)])
print("loss", trainer.train().training_loss)
end(trainer.model)
"""
PROGRAMS = {"accelerate": ACCELERATE, "lightning_fabric": FABRIC, "pytorch_lightning": LIGHTNING, "transformers": TRAINER}
#: The shortest of them run always. The imports of the others alone take longer.
SHORT = ("accelerate",)


@pytest.mark.parametrize("library", [each if each in SHORT else pytest.param(each, marks=pytest.mark.thorough) for each in PROGRAMS])
def test_a_program_ends_with_the_model_that_it_ends_with_over_gloo(installed, tmp_path, library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed; packaging/packages.sh has the names of the packages")
    lines = {}
    for backend in ("gloo", "runjob"):
        script = tmp_path / backend / "train.py"
        script.parent.mkdir()
        script.write_text(BEGIN + PROGRAMS[library])
        found, errors = run(installed, None, "--torch-backend", backend, arguments=[script, tmp_path / backend / "output"])
        lines[backend] = [line for line in found if line.startswith(("model", "loss"))]
        assert len(lines[backend]) == 4, (found, errors)
    gloo, ours = ([line.partition(" over ")[0] for line in lines[backend]] for backend in ("gloo", "runjob"))
    assert ours == gloo
    assert all("Runjob" in line for line in lines["runjob"] if line.startswith("model"))
    assert not any("Runjob" in line for line in lines["gloo"])
