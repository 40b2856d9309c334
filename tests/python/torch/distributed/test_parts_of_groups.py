"""Groups that PyTorch makes of the ranks of other groups."""

import pytest
import torch
import torch.distributed as dist
from both_backends import caught, over


def total_in(group):
    """The sum of the members' ranks plus one."""
    tensor = torch.full((3,), dist.get_rank() + 1.0)
    dist.all_reduce(tensor, group=group)
    return tensor[0].item()


def kinds_of_subgroups():
    def run():
        results = {}
        mine, _ = dist.new_subgroups(3)
        results["of three"] = total_in(mine), dist.get_process_group_ranks(mine)
        mine, _ = dist.new_subgroups_by_enumeration([[0, 2], [1]])
        results["listed"] = total_in(mine), dist.get_process_group_ranks(mine)
        mine = dist.new_group([dist.get_rank()], use_local_synchronization=True)
        results["alone"] = total_in(mine)
        return results

    return over("runjob", run)


def test_subgroups(call_ranks):
    for rank, results in enumerate(call_ranks(kinds_of_subgroups, 3)):
        assert results["of three"] == (6.0, [0, 1, 2])
        assert results["listed"] == ((2.0, [1]) if rank == 1 else (4.0, [0, 2]))
        assert results["alone"] == rank + 1


def parts():
    def run():
        part = dist.split_group(split_ranks=[[2, 0], [1]])
        found = total_in(part), dist.get_process_group_ranks(part), dist.get_rank(part)
        # PyTorch names a group by the number of groups before it: the ranks have equally many.
        alone = total_in(dist.split_group(split_ranks=[[0]] if dist.get_rank() == 1 else [[1], [0]], parent_pg=part))
        some = dist.split_group(split_ranks=[[1, 2]])
        pair = total_in(some) if dist.get_rank() else some is dist.GroupMember.NON_GROUP_MEMBER
        dist.destroy_process_group(part)
        return found, alone, pair, total_in(dist.group.WORLD)

    return over("runjob", run)


@pytest.mark.skipif(not hasattr(dist, "split_group"), reason="this PyTorch has no split_group()")
def test_groups_are_split(call_ranks):
    for rank, (found, alone, pair, total) in enumerate(call_ranks(parts, 3)):
        assert found == ((2.0, [1], 0) if rank == 1 else (4.0, [2, 0], 0 if rank == 2 else 1))
        assert alone == rank + 1
        assert pair == (5.0 if rank else True)
        assert total == 6.0


def split_of_a_group_with_a_backend_for_each_device():
    return over("cpu:runjob,cuda:gloo", lambda: caught(lambda: dist.split_group(split_ranks=[[0, 1], [2]])))


@pytest.mark.skipif(not hasattr(dist, "split_group"), reason="this PyTorch has no split_group()")
def test_a_group_with_a_backend_for_each_device_is_not_split(call_ranks):
    for text in call_ranks(split_of_a_group_with_a_backend_for_each_device, 3):
        assert text.startswith("RuntimeError") and "split" in text
