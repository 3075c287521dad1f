"""Work on the processes of a Dask cluster, for calls that take client=: data that all jobs share, jobs whose results
come in the order of the jobs, and errors that name the job. distributed is imported once a client is used.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import threading
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from pinnace import _core
from pinnace.files import one_line
from pinnace.packages import import_package
from pinnace.progress import counted, is_shown

# What is used of a dask.distributed.Client: a class of that shape is taken as well.
_METHODS = ("submit", "compute", "cancel", "nthreads")
# Of data that is sent to workers at once. Dask warns from 10 MB on.
SLICE_BYTES = 4 << 20
Item = TypeVar("Item")
# Seconds between two looks at whether to go on, while a job is waited for.
POLL = 0.2


def check_client(client: object) -> None:
    """InvalidArgument: it is no client of Dask, or one for coroutines. None is one that nobody gave."""
    if client is None:
        return
    if isinstance(client, type) or not all(callable(getattr(client, name, None)) for name in _METHODS):
        kind = f"the class {client.__name__}" if isinstance(client, type) else f"{type(client).__name__} {client!r:.80}"
        raise _core.InvalidArgument(f"client must be a dask.distributed.Client, is {kind}")
    if getattr(client, "asynchronous", False) is True:
        raise _core.InvalidArgument("client must be one that waits, is a Client with asynchronous=True")


class Shared:
    """What all jobs of one kind need. It is sent to a worker once, and what is made of it there stays with it: in the
    worker's memory, as long as the client's call lasts."""

    def __init__(self, data: bytes) -> None:
        """data: a pickle."""
        self._data = data
        self._lock = threading.Lock()
        self._made: Any = None

    def __reduce__(self) -> tuple[type[Shared], tuple[bytes]]:
        """The pickle alone."""
        return Shared, (self._data,)

    def __sizeof__(self) -> int:
        """What Dask counts: the pickle, and the same again for what is made of it."""
        return 2 * len(self._data)

    def opened(self, make: Callable[[Any], Any]) -> Any:
        """make(what was shared), once for all jobs that run here.

        InvalidArgument: the pickle cannot be read here, for instance for want of a module."""
        with self._lock:
            if self._made is None:
                try:
                    thing = pickle.loads(self._data)
                except _core.Error:
                    raise
                except Exception as error:  # of the classes' own code
                    raise _core.InvalidArgument(f"a worker cannot read what it was sent: {_text(error)}") from None
                self._made = make(thing)
            return self._made


@dataclass(frozen=True)
class Job:
    """One call on a worker.

    what       which samples or programs it is about, in errors: "calibration samples 4 to 7"; or a function that says
               so when it is asked, for what is known only after the jobs before it.
    arguments  the function's, after what is shared. Those of Dask are computed first.
    partition  whether one of them is a partition of the user's data set.
    """

    what: str | Callable[[], str]
    arguments: tuple[Any, ...]
    partition: bool = False

    @property
    def name(self) -> str:
        """What it is about, as far as that is known."""
        return self.what if isinstance(self.what, str) else self.what()


class Cluster:
    """A client in use."""

    def __init__(self, client: Any, progress: bool = True) -> None:
        """progress: whether to show how far the jobs are.

        InvalidArgument: the client is closed; Unsupported: the package distributed is not there."""
        try:
            self._package = import_package("distributed")
            self._dask = import_package("dask")
        except ImportError as error:
            raise _core.Unsupported(
                f"client= needs the package distributed (pip install pinnace[dask]): {error}"
            ) from None
        check_client(client)
        status = getattr(client, "status", "running")
        if status != "running":
            raise _core.InvalidArgument(f"client is {status}, must be running")
        self._client, self._progress = client, progress

    @property
    def slots(self) -> int:
        """How many jobs can run at a time, now."""
        try:
            return max(1, sum(self._client.nthreads().values()))
        except Exception as error:
            self._lost("the workers cannot be counted", error)

    def share(self, thing: Any, name: str) -> Any:
        """A future of it as Shared. It is made again from the scheduler's copy where the workers that had it died.

        name: for errors, as "the metric". InvalidArgument: it cannot be pickled."""
        try:
            data = import_package("cloudpickle").dumps(thing, 5)
        except _core.Error:
            raise
        except Exception as error:  # of the classes' own code
            raise _core.InvalidArgument(
                f"{name} cannot be sent to the workers, it cannot be pickled: {_text(error)}"
            ) from None
        with warnings.catch_warnings():
            # Of bytes that are in the graph. As scattered data they would be lost with the workers that have them.
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self._submit(name, Shared, data)

    def results(
        self, function: Callable[..., Any], shared: Any, jobs: Iterable[Job], title: str
    ) -> Generator[Any, None, None]:
        """function(Shared, *arguments of the job) of each, in the order of the jobs. To be closed: what still runs is
        cancelled then, as it is after an error and after Ctrl-C.

        Jobs of a sequence are all submitted at once; those of an iterator as workers get free, so that few are in
        memory. InvalidArgument: a partition cannot be computed; DeviceLost: its workers died, or the cluster went away;
        errors of the function as they are. All name the job.
        """
        waiting: deque[tuple[Job, Any]] = deque()
        try:
            if isinstance(jobs, Sequence):
                waiting.extend(zip(jobs, self._all(function, shared, jobs, title), strict=True))
                with self._bar([future for _, future in waiting]):
                    while waiting:
                        yield self._next(waiting)
                return
            slots = self.slots
            with counted(title, self._progress) as step:
                for job in jobs:
                    waiting.append((job, self._submit(job.name, function, shared, *job.arguments)))
                    if len(waiting) > slots + slots // 2 + 1:
                        step()
                        yield self._next(waiting)
                while waiting:
                    step()
                    yield self._next(waiting)
        finally:
            if waiting:
                with contextlib.suppress(Exception):  # of a cluster that is gone
                    self._client.cancel([future for _, future in waiting])

    def _key(self, function: Callable[..., Any]) -> str:
        """What the task is called on Dask's own pages."""
        return f"pinnace-{function.__name__.replace('_', '-')}-{uuid.uuid4().hex}"

    def _submit(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self._client.submit(function, *arguments, key=self._key(function), pure=False)
        except Exception as error:
            self._lost(what, error)

    def _all(self, function: Callable[..., Any], shared: Any, jobs: Sequence[Job], title: str) -> list[Any]:
        call = self._dask.delayed(function, pure=False)
        calls = [call(shared, *job.arguments, dask_key_name=self._key(function)) for job in jobs]
        try:
            return list(self._client.compute(calls, optimize_graph=False))
        except Exception as error:
            self._lost(title, error)

    def _next(self, waiting: deque[tuple[Job, Any]]) -> Any:
        """Of the first one, which stays in the queue until its result is there."""
        job, future = waiting[0]
        while not future.done():
            _core.check_cancelled(job.name)
            if getattr(self._client, "status", "running") != "running":
                self._lost(job.name, RuntimeError(f"it is {self._client.status}"))
            try:
                self._package.wait([future], timeout=POLL)
            except TimeoutError:
                continue
            except Exception:  # the future itself says it better
                break
        try:
            result = future.result(timeout=60)
        except Exception as error:
            self._raise(job, error)
        waiting.popleft()
        return result

    def _raise(self, job: Job, error: Exception) -> NoReturn:
        if isinstance(error, _core.Error):
            named = type(error)(f"{job.name}: {error}")
            named.offset, named.rule, named.nodes = error.offset, error.rule, error.nodes
            raise named from None
        if isinstance(error, self._package.KilledWorker):
            raise _core.DeviceLost(
                f"{job.name}: {error.allowed_failures + 1} workers that were given them ended, one after the other, "
                f"the last of them {error.last_worker.address}; another task there may be the cause. A worker that "
                "takes more memory than it may is ended so; its log says why."
            ) from None
        if isinstance(error, CancelledError | self._package.comm.CommClosedError):
            self._lost(job.name, error)
        if job.partition:
            raise _core.InvalidArgument(f"{job.name} cannot be read: {_text(error)}") from error
        if isinstance(error, TimeoutError | OSError):
            self._lost(job.name, error)
        raise _core.InvalidArgument(f"{job.name} cannot be run on a worker: {_text(error)}") from error

    def _lost(self, what: str, error: Exception) -> NoReturn:
        raise _core.DeviceLost(f"{what}: the client has lost its cluster: {_text(error)}") from error

    @contextlib.contextmanager
    def _bar(self, futures: list[Any]) -> Iterator[None]:
        """Dask's own progress bar: a widget in a notebook, on a terminal a line, drawn by a thread of its own."""
        drawing = None
        if self._progress and is_shown() and futures:
            if self._package.utils.is_kernel():
                with contextlib.suppress(ImportError):  # of ipywidgets
                    display = import_package("IPython.display").display
                    display(self._package.progress(futures, notebook=True))
            elif sys.stdout is not None and sys.stdout.isatty():
                drawing = threading.Thread(target=_draw, args=(self._package.progress, futures), daemon=True)
                drawing.start()
        try:
            yield
        finally:
            if drawing is not None:
                drawing.join(timeout=1)


def _draw(progress: Callable[..., Any], futures: list[Any]) -> None:
    with contextlib.suppress(Exception):  # of a cluster that is gone: whoever waits for the results reports that
        progress(futures, notebook=False)


def _text(error: BaseException) -> str:
    return one_line(error, 300, kind=True)


# ---- data sets


def slices(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Of what comes from this process, so many at a time, and no more than SLICE_BYTES where one has no more. size: the
    bytes of one."""
    taken: list[Item] = []
    total = 0
    for item in items:
        more = size(item)
        if taken and (len(taken) >= most or total + more > SLICE_BYTES):
            yield taken
            taken, total = [], 0
        taken.append(item)
        total += more
    if taken:
        yield taken


def is_partitioned(data: Any) -> bool:
    """Whether it is a Dask bag, a list of delayed values or futures, or one delayed value: parts of a data set that are
    nowhere yet, or on workers. Dask is not imported for that: who made data of Dask has imported it.

    InvalidArgument: other collections of Dask, or a list that is of Dask in part.
    """
    if "dask" not in sys.modules:
        return False
    if _is_partition(data):
        return True
    if _is_dask(data):
        if type(data).__name__ == "Bag":
            return True
        kind = f"{type(data).__module__}.{type(data).__name__}"
        raise _core.InvalidArgument(f"a {kind} is no data set: a bag of samples is, or a list of delayed partitions")
    if isinstance(data, list | tuple) and (count := sum(map(_is_partition, data))):
        if count < len(data):
            raise _core.InvalidArgument(f"{count} of {len(data)} items are delayed: either all are partitions, or none")
        return True
    return False


def check_here(data: Any, name: str) -> None:
    """InvalidArgument: delayed partitions, without a client; a bag is iterable, and computes itself."""
    if is_partitioned(data) and type(data).__name__ != "Bag":
        raise _core.InvalidArgument(
            f"{name} has delayed partitions: client= must say on whose workers they are computed"
        )


def partitions_of(data: Any) -> list[Any]:
    """The partitions of what is_partitioned()."""
    if _is_partition(data):
        return [data]
    return list(data) if isinstance(data, list | tuple) else list(data.to_delayed())


def _is_dask(data: Any) -> bool:
    return not isinstance(data, type) and callable(getattr(data, "__dask_graph__", None))


def _is_partition(data: Any) -> bool:
    kind = type(data)
    named = (kind.__module__.partition(".")[0], kind.__name__)
    return named == ("distributed", "Future") or (named[1].startswith("Delayed") and _is_dask(data))


__all__ = ["Cluster", "Job", "Shared", "check_client", "check_here", "is_partitioned", "partitions_of", "slices"]
