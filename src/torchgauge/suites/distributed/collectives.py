"""Collectives as modules: what each sends, what it receives, and what is right, to the bit.

Sizes and factors are those of nccl-tests (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md):

* the *size* of a call is that of the whole message: what an all-reduce or a broadcast sends, what an
  all-gather receives, what a reduce-scatter or an all-to-all of one process sends;
* *algorithm bandwidth* is size by time, *bus bandwidth* that times a factor, by which calls on any number of
  processes can be held against the speed of the links: 2(n-1)/n for an all-reduce, (n-1)/n for an all-gather,
  a reduce-scatter and an all-to-all, 1 for a broadcast and for sending and receiving.

Messages hold whole numbers that the dtype, and any sum of them over all processes, holds exactly: others on
each process, in each place. So every element of a result is known, and has to be equal.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import distributed, nn

CYCLE = 8191
"""Numbers repeat after so many places at the latest: a prime, so that no power of two repeats them."""
STRIDE = 31
"""By so much the numbers of a process are ahead of those of the one before."""


class Collective(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """A call of ``elements`` in all, seen from ``rank`` of ``count`` processes.

    ``in_parts`` says that every process has its part of the message, so that it is a multiple of ``count``.
    """

    in_parts: ClassVar[bool] = False

    def __init__(self, elements: int, rank: int, count: int) -> None:
        super().__init__()
        self.elements, self.rank, self.count = elements, rank, count

    @property
    def part(self) -> int:
        """Elements of one process's part."""
        return self.elements // self.count

    @property
    def factor(self) -> float:
        """Bus bandwidth by algorithm bandwidth."""
        return (self.count - 1) / self.count if self.in_parts else 1.0

    @property
    def sends(self) -> int:
        """Elements that one process sends."""
        return self.elements

    @property
    def receives(self) -> int:
        """Elements of the room for what it receives; 0 where the message itself becomes that."""
        return 0

    def message(self, rank: int, dtype: Any) -> Any:
        """What process ``rank`` sends: (sends,) whole numbers."""
        cycle = min(CYCLE, int(2 / torch.finfo(dtype).eps) // self.count)
        places = torch.arange(self.sends, dtype=torch.int32)
        return ((places + STRIDE * rank) % cycle + 1).to(dtype)

    def room(self, message: Any) -> Any:
        """Where a call of ``message`` puts what it receives; None where it needs no room."""
        return message.new_full((self.receives,), -1.0) if self.receives else None

    def expected(self, dtype: Any) -> Any:
        """What this process has after the call, found without any."""
        raise NotImplementedError

    def _all(self, dtype: Any) -> list[Any]:
        return [self.message(rank, dtype) for rank in range(self.count)]


class AllReduce(Collective):
    """The sum over all processes, in the place of the message."""

    @property
    def factor(self) -> float:
        """Each element travels twice, but for the part of the process itself."""
        return 2 * (self.count - 1) / self.count

    def expected(self, dtype: Any) -> Any:
        """The sum of all messages."""
        return sum(each.double() for each in self._all(dtype)).to(dtype)

    def forward(self, message: Any, _room: Any) -> Any:
        """The message, which is the sum then."""
        distributed.all_reduce(message)
        return message


class Broadcast(Collective):
    """The message of process 0."""

    def expected(self, dtype: Any) -> Any:
        """That message."""
        return self.message(0, dtype)

    def forward(self, message: Any, _room: Any) -> Any:
        """The message, which is that of process 0 then."""
        distributed.broadcast(message, 0)
        return message


class SendReceive(Collective):
    """Every process sends to the next one and receives from the one before, in a ring."""

    @property
    def receives(self) -> int:
        """As much as is sent."""
        return self.elements

    def expected(self, dtype: Any) -> Any:
        """The message of the one before."""
        return self.message((self.rank - 1) % self.count, dtype)

    def forward(self, message: Any, room: Any) -> Any:
        """The room, with what came."""
        to, source = (self.rank + 1) % self.count, (self.rank - 1) % self.count
        both = [
            distributed.P2POp(distributed.isend, message, to),
            distributed.P2POp(distributed.irecv, room, source),
        ]
        for work in distributed.batch_isend_irecv(both):
            work.wait()
        return room


class AllGather(Collective):
    """The parts of all processes, one after another."""

    in_parts = True

    @property
    def sends(self) -> int:
        """Its part."""
        return self.part

    @property
    def receives(self) -> int:
        """All of it."""
        return self.elements

    def expected(self, dtype: Any) -> Any:
        """All messages, one after another."""
        return torch.cat(self._all(dtype))

    def forward(self, message: Any, room: Any) -> Any:
        """The room, with all parts."""
        distributed.all_gather_into_tensor(room, message)
        return room


class ReduceScatter(Collective):
    """This process's part of the sum over all."""

    in_parts = True

    @property
    def receives(self) -> int:
        """Its part."""
        return self.part

    def expected(self, dtype: Any) -> Any:
        """That part of the sum of all messages."""
        whole = sum(each.double() for each in self._all(dtype)).to(dtype)
        return whole.view(self.count, -1)[self.rank].clone()

    def forward(self, message: Any, room: Any) -> Any:
        """The room, with the part."""
        distributed.reduce_scatter_tensor(room, message)
        return room


class AllToAll(Collective):
    """Part r of every process's message goes to process r."""

    in_parts = True

    @property
    def receives(self) -> int:
        """As much as is sent."""
        return self.elements

    def expected(self, dtype: Any) -> Any:
        """This process's part of every message."""
        return torch.cat([each.view(self.count, -1)[self.rank] for each in self._all(dtype)])

    def forward(self, message: Any, room: Any) -> Any:
        """The room, with what came."""
        distributed.all_to_all_single(room, message)
        return room


CLASSES: dict[str, type[Collective]] = {
    "all_reduce": AllReduce,
    "broadcast": Broadcast,
    "send_recv": SendReceive,
    "all_gather": AllGather,
    "reduce_scatter": ReduceScatter,
    "all_to_all": AllToAll,
}


class FunctionalAllReduce(AllReduce):
    """The sum, as a new tensor."""

    def forward(self, message: Any, _room: Any) -> Any:
        """The sum."""
        calls, group = _functional()
        return calls.wait_tensor(calls.all_reduce(message, "sum", group))


class FunctionalBroadcast(Broadcast):
    """The message of process 0, as a new tensor."""

    def forward(self, message: Any, _room: Any) -> Any:
        """That message."""
        calls, group = _functional()
        return calls.wait_tensor(calls.broadcast(message, 0, group))


class FunctionalAllGather(AllGather):
    """The parts of all, as a new tensor."""

    def forward(self, message: Any, _room: Any) -> Any:
        """All parts."""
        calls, group = _functional()
        return calls.wait_tensor(_newer("all_gather_single", "all_gather_tensor")(message, 0, group))


class FunctionalReduceScatter(ReduceScatter):
    """This process's part of the sum, as a new tensor."""

    def forward(self, message: Any, _room: Any) -> Any:
        """The part."""
        calls, group = _functional()
        newer = _newer("reduce_scatter_single", "reduce_scatter_tensor")
        return calls.wait_tensor(newer(message, "sum", 0, group))


class FunctionalAllToAll(AllToAll):
    """What came from all, as a new tensor."""

    def forward(self, message: Any, _room: Any) -> Any:
        """What came."""
        calls, group = _functional()
        return calls.wait_tensor(calls.all_to_all_single(message, None, None, group))


FUNCTIONAL: dict[str, type[Collective]] = {
    "all_reduce": FunctionalAllReduce,
    "broadcast": FunctionalBroadcast,
    "all_gather": FunctionalAllGather,
    "reduce_scatter": FunctionalReduceScatter,
    "all_to_all": FunctionalAllToAll,
}
"""Those that torch has without effects on their arguments: the form that compilers capture."""


def _functional() -> tuple[Any, Any]:
    """The functional collectives, and the group of all processes."""
    from torch.distributed import _functional_collectives

    return _functional_collectives, distributed.group.WORLD


def _newer(name: str, before: str) -> Any:
    """The functional collective called ``name``, which older ones of torch have as ``before``."""
    calls = _functional()[0]
    return getattr(calls, name, None) or getattr(calls, before)
