"""The cache of compiled kernels on disk.

Numba's own cache cannot be used. It names a function by a number that counts from 1 in each process, it has an index that
two processes may write at the same time, and its key leaves out functions of other files; so a third process may load the
wrong kernel, which computes wrong forces without an error. And it executes what it finds beside the source, or where a file
in the current folder says. Here the name of a file is a hash of everything that its kernel depends on, and the file is in
:mod:`nbody.compute.compiling.cache`, which takes nothing that another user could have written. A file that is damaged is
ignored; if none can be written, the run goes on.
"""

import hashlib
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar

from nbody.compute.compiling import cache
from nbody.compute.compiling.fingerprint import Fingerprint, Unknown, fingerprint


class KernelCache(ABC):
    """The cached kernels of one function, one for each list of argument types, with the interface of Numba's caches."""

    device: ClassVar[str]
    """The argument of :func:`kernel`."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(cache.kernels())

    def job(self, name: str, types: Any) -> bytes:
        """What another process needs to compile a kernel: device, machine, function, options, the file and the types."""
        from numba.core.serialize import dumps

        return dumps((self.device, self.machine(), self._function, self._options, name, types))

    @property
    def size(self) -> int:
        """The size of the function and all that it calls; the larger, the longer it compiles."""
        return self._fingerprint.size

    @cached_property
    def _fingerprint(self) -> Fingerprint:
        """That of the function and its options; its hash is empty if they cannot be described."""
        try:
            options = sorted((name, sorted(each) if isinstance(each, set) else each) for name, each in self._options.items())
            found = fingerprint(self._function)
            return found._replace(hash=repr((found.hash, options)))
        except (Unknown, ValueError, RecursionError):  # ValueError: a variable that has no value yet
            return Fingerprint("", 0)

    def name(self, types: Any) -> str:
        """The name of the file of the kernel for a list of types; empty if it can't be cached."""
        if not self._fingerprint.hash:
            return ""
        code = hashlib.sha256(repr((self._fingerprint.hash, self.machine(), repr(types))).encode()).hexdigest()
        return f"kernels/{self._function.__name__.strip('<>')}-{code[:32]}"

    def by_one_process(self, types: Any) -> AbstractContextManager[None]:
        """Inside this block no other process compiles the kernel for these types: ranks, and the runs of a sweep, compile
        each kernel once. One that another process has compiled is found in the cache."""
        name = self.name(types)
        return cache.by_one_process(name) if name and not cache.exists(name) else nullcontext()

    def load_overload(self, types: Any, context: Any) -> Any:
        """The kernel for these types, ready to run; None if it must be compiled."""
        name = self.name(types)
        found = cache.load_bytes(name) if name else None
        if found is not None:
            with suppress(Exception):  # a library changed without a new version, or the types are in other files now
                return self.unpacked(found, context)
        return None

    def save_overload(self, types: Any, compiled: Any) -> None:
        """Cache a compiled kernel, if possible."""
        name = self.name(types)
        data = self.packed(compiled) if name else None
        if data is not None:
            cache.store_bytes(name, data)

    @staticmethod
    @abstractmethod
    def machine() -> tuple:
        """What machine code depends on besides the kernel: the processor, the compilers and their settings."""

    @staticmethod
    @abstractmethod
    def packed(compiled: Any) -> bytes | None:
        """The bytes of a compiled kernel; None if it belongs to this process alone."""

    @staticmethod
    @abstractmethod
    def unpacked(data: bytes, context: Any) -> Any:
        """The kernel that :meth:`packed` has turned into bytes. Raises some error if a library is another one now."""
