"""The scaling exercise with PyTorch: the batch of all ranks together stays as large as it is, however many there are."""

import time

import digits_data
import torch

# 1. Initializing Horovod
import horovod.torch as hvd

hvd.init()

# 2. Adapting the local batch to the desired global batch size and the number of workers
global_batch_size = 64
local_batch_size = global_batch_size // hvd.size()
epochs = 4

# 3. Pinning AI-accelerators to workers in a bijective way
torch.manual_seed(0)
device = torch.device("cpu")
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())
    device = torch.device("cuda")

# 4. Creating data generators
(x_train, y_train), (x_test, y_test) = digits_data.load_data()


def dataset(x, y):
    return torch.utils.data.TensorDataset(torch.tensor(x[:, None] / 255.0, dtype=torch.float32), torch.tensor(y))


train = dataset(x_train, y_train)
sampler = torch.utils.data.distributed.DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(train, batch_size=local_batch_size, sampler=sampler)

# 5. Building the neural network
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 32, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(32, 32, 3),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(32 * 36, 10),
    torch.nn.LogSoftmax(dim=1),
).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

# 6. Training it
for epoch in range(1, epochs + 1):
    start = time.time()
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.nll_loss(model(images.to(device)), labels.to(device)).backward()
        optimizer.step()
    print("Epoch:", epoch, round(time.time() - start, 1), "sec.")

# 7. Evaluating it (time & accuracy)
with torch.no_grad():
    images, labels = dataset(x_test, y_test)[:]
    output = model(images.to(device)).cpu()
loss = hvd.allreduce(torch.nn.functional.nll_loss(output, labels), name="loss").item()
accuracy = hvd.allreduce((output.argmax(dim=1) == labels).float().mean(), name="accuracy").item()
print("Loss: ", loss, " accuracy: ", accuracy)
