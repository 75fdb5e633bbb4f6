"""numba, made to translate only what Python calls; what only other functions call is kept for linking.

By itself numba optimises and translates each function, and does it again inside every function that calls
it, six deep for a sampler, of which Python calls the outermost. Not to do that

- more than halves the time to compile, and
- keeps equal bits. The inner functions' machine code would lie in the process that compiled, under the names
  that their copies inside the outermost have, and be taken in place of these; but a copy is optimised for
  its caller, and its sums may round differently. So the chains of the process that compiled could differ in
  their last digits from those of all later ones, which find the outermost alone in the cache.

The exception are functions whose names end in `APART`, the passes over rows, which many samplers call and
which take longest to optimise: they are translated by themselves, callers know their names alone, and
their files in the cache bring them along. In such files a name has to mean one thing whichever process wrote
them, so these functions see classes of this package alone (compiler.py).

And what it translates takes the longest vectors where they pay.

This reaches into numba (`_library_class`, `set_env`, what `Library` overrides and what it hands to the
cache). With a version that has not been tried numba is left alone: it is slower then, and as right.
"""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import numba
from llvmlite.binding import get_host_cpu_features, parse_assembly
from numba.core import codegen, environment
from numba.core.registry import cpu_target

TRIED = "0.68."  #: how versions of numba begin that have these insides

#: Names of functions whose floating-point operations may be reordered: they are optimised before they are
#: linked, so that the order of their sums is their own, not their callers'.
optimised_alone: set[str] = set()

#: How names of functions end that are translated by themselves, for all callers.
APART = "@apart"

#: The functions that Python calls: of these alone the cache keeps what they need of those apart.
entries: set[str] = set()

#: What is translated apart and lies in this process's memory, by symbol.
_in_memory: dict[str, "Library"] = {}

#: For LLVM: vectors of 512 bits. On Intel's processors it takes 256 by itself, for the first with the long
#: ones slowed down when these were used; those of 2019 and later, which have this feature, do not, and sums
#: of ten columns take a quarter less with the long ones. Elsewhere this changes nothing.
_LONG_VECTORS, _TAKE_THEM = "avx512vbmi2", '"prefer-vector-width"="512"'

_ENTRIES = ("_ZN7cpython", "_ZN5cfunc")  # how names of what Python or C can call begin
_ENVIRONMENT = "_ZN08NumbaEnv"  # and those of pointers to what a function knows of Python


_JITCodeLibrary: Any = codegen.JITCodeLibrary
_environment_of: Any = environment.lookup_environment


class Library(_JITCodeLibrary):  # type: ignore[misc]
    """The code of a function and of what it calls, with machine code if Python or other libraries call it."""

    def __init__(self, generator: Any, name: str) -> None:
        super().__init__(generator, name)
        self._needed: dict[str, Library] = {}  # what it calls that is translated apart, by symbol
        self._own_symbol = ""  # if it is translated apart itself

    def _is_inner(self) -> bool:
        """Whether it was compiled just now, as part of others only."""
        if not self._object_caching_enabled or self._compiled_object is not None:  # numba's own, or cached
            return False
        functions = self._final_module.functions
        return not any(one.name.startswith(_ENTRIES) and not one.is_declaration for one in functions)

    def _is_apart(self) -> bool:
        return bool(self.name.endswith(APART))

    def _symbol(self) -> str:
        """What callers of a function translated apart call; TypeError if it is not alone.

        numba writes more for errors with values, and the cache would not keep what these need.
        """
        names = [
            one.name
            for one in self._final_module.functions
            if not one.is_declaration and one.linkage.name == "external"
        ]
        if len(names) != 1:
            raise TypeError(f"{self.name}: no errors with values in what is translated apart")
        return str(names[0])

    def add_ir_module(self, ir_module: Any) -> None:
        """Take code over, to be compiled for long vectors."""
        if get_host_cpu_features().get(_LONG_VECTORS):
            for function in ir_module.functions:
                if not function.is_declaration:
                    set.add(function.attributes, _TAKE_THEM)  # past the list of what it knows
        super().add_ir_module(ir_module)

    def add_linking_library(self, library: Any) -> None:
        """Take what another library holds, or note that it is needed at run time."""
        super().add_linking_library(library)
        if isinstance(library, Library):
            self._needed.update(library._needed)
            if library._own_symbol:
                self._needed[library._own_symbol] = library
            if self._needed:
                self._dynamic_globals += library._dynamic_globals  # addresses: nothing for the cache

    @property
    def has_dynamic_globals(self) -> bool:
        """Whether the cache cannot keep it: nor if others than this package would have to read it."""
        only_here = bool(self._needed) and self.name not in entries
        return only_here or bool(super().has_dynamic_globals)

    def _get_module_for_linking(self) -> Any:
        """What callers copy: nothing of what is translated apart, which they have declared."""
        if self._own_symbol:
            return parse_assembly(str(self._codegen._create_empty_module(self.name)))
        return super()._get_module_for_linking()

    def _optimize_final_module(self) -> None:
        if not self._is_inner() or self._is_apart() or self.name in optimised_alone:
            super()._optimize_final_module()
            return
        # What comes first in any case: it inlines, so that callers see all there is.
        passes, builder = self._codegen._module_pass_manager(
            loop_vectorize=self._codegen._loopvect,
            slp_vectorize=False,
            opt=self._codegen._opt_level,
            cost="cheap",
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        if self._is_inner() and self._is_apart():
            self._own_symbol = self._symbol()
        elif self._is_inner():
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True
            return
        if self._object_caching_enabled:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "linkonce_odr":
                    function.linkage = "internal"  # no other library's function of that name is taken
        super()._finalize_final_module()
        for one in self._final_module.global_variables:  # inner functions tell errors by way of theirs
            known = _environment_of(one.name) if one.name.startswith(_ENVIRONMENT) else None
            if known is not None:
                self._codegen.set_env(one.name, known)
        if self._own_symbol:
            _in_memory[self._own_symbol] = self

    def serialize_using_object_code(self) -> tuple[Any, ...]:
        """What the cache keeps: numba's own, and all that is needed at run time, if anything is."""
        own: tuple[Any, ...] = super().serialize_using_object_code()
        needed = {symbol: one.serialize_using_object_code() for symbol, one in self._needed.items()}
        return (*own, needed) if needed else own

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        for symbol, its_state in state[3].items() if len(state) > 3 else ():
            if symbol not in _in_memory:
                _in_memory[symbol] = cls._unserialize(codegen, its_state)
        return super()._unserialize(codegen, state[:3])


@contextlib.contextmanager
def entries_only() -> Iterator[None]:
    """While it is open, numba makes machine code of functions that Python can call, and of no others."""
    if not numba.__version__.startswith(TRIED):
        yield
        return
    generator: Any = cpu_target.target_context.codegen()
    generator._library_class, generator.set_env = Library, functools.partial(_set_env, generator)
    try:
        yield
    finally:
        del generator._library_class, generator.set_env  # those of its class show again


def is_cached(machine_code: Any, types: tuple[Any, ...]) -> bool:
    """Whether the cache has a function's machine code for these types; False where that cannot be told."""
    if not numba.__version__.startswith(TRIED):
        return False
    cache, context = machine_code._cache, machine_code.targetctx
    context.refresh()
    files = cache._cache_file
    name = files._load_index().get(cache._index_key(types, context.codegen()))
    return name is not None and os.path.isfile(files._data_path(name))


def _set_env(generator: Any, name: str, environment: Any) -> None:
    """Tell a function where its globals are, if it has machine code."""
    if generator._engine.is_symbol_defined(name):
        type(generator).set_env(generator, name, environment)
