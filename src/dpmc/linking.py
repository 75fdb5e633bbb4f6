"""numba, made to translate only what Python calls; what only other functions call is kept for linking.

By itself numba optimises and translates each function, and does it again inside every function that calls
it, six deep for a sampler, of which Python calls the outermost. Not to do that

- more than halves the time to compile, and
- keeps equal bits. The inner functions' machine code would lie in the process that compiled, under the names
  that their copies inside the outermost have, and be taken in place of these; but a copy is optimised for
  its caller, and its sums may round differently. So the chains of the process that compiled could differ in
  their last digits from those of all later ones, which find the outermost alone in the cache.

And what it translates takes the longest vectors where they pay.

This reaches into numba (`_library_class`, `set_env`, and what `Library` overrides). With a version that has
not been tried numba is left alone: it is slower then, and as right.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numba
from llvmlite.binding import get_host_cpu_features
from numba.core import codegen
from numba.core.registry import cpu_target

TRIED = "0.68."  #: how versions of numba begin that have these insides

#: Names of functions whose floating-point operations may be reordered: they are optimised before they are
#: linked, so that the order of their sums is their own, not their callers'.
optimised_alone: set[str] = set()

#: For LLVM: vectors of 512 bits. On Intel's processors it takes 256 by itself, for the first with the long
#: ones slowed down when these were used; those of 2019 and later, which have this feature, do not, and sums
#: of ten columns take a quarter less with the long ones. Elsewhere this changes nothing.
_LONG_VECTORS, _TAKE_THEM = "avx512vbmi2", '"prefer-vector-width"="512"'

_ENTRIES = ("_ZN7cpython", "_ZN5cfunc")  # how names of what Python or C can call begin


_JITCodeLibrary: Any = codegen.JITCodeLibrary


class Library(_JITCodeLibrary):  # type: ignore[misc]
    """The code of a function and of all that it calls, with machine code only if Python can call it."""

    def _is_inner(self) -> bool:
        """Whether it was compiled just now, as part of others only."""
        if not self._object_caching_enabled or self._compiled_object is not None:  # numba's own, or cached
            return False
        functions = self._final_module.functions
        return not any(one.name.startswith(_ENTRIES) and not one.is_declaration for one in functions)

    def add_ir_module(self, ir_module: Any) -> None:
        """Take code over, to be compiled for long vectors."""
        if get_host_cpu_features().get(_LONG_VECTORS):
            for function in ir_module.functions:
                if not function.is_declaration:
                    set.add(function.attributes, _TAKE_THEM)  # past the list of what it knows
        super().add_ir_module(ir_module)

    def _optimize_final_module(self) -> None:
        if not self._is_inner() or self.name in optimised_alone:
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
        if self._is_inner():
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True
            return
        if self._object_caching_enabled:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "linkonce_odr":
                    function.linkage = "internal"  # no other library's function of that name is taken
        super()._finalize_final_module()


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


def _set_env(generator: Any, name: str, environment: Any) -> None:
    """Tell a function where its globals are, if it has machine code."""
    if generator._engine.is_symbol_defined(name):
        type(generator).set_env(generator, name, environment)
