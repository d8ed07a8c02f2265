"""The native compiler: find it, compile generated C with it, keep the result on disk, load it.

Read `compiler` (which one, and what it can do) first, then `build`; `trust` says which compiled code is loaded.
"""

from fluxloom.toolchain.build import Library as Library
from fluxloom.toolchain.build import load_library as load_library
from fluxloom.toolchain.build import vectorised_lines as vectorised_lines
from fluxloom.toolchain.cache import Cache as Cache
from fluxloom.toolchain.cache import open_cache as open_cache
from fluxloom.toolchain.compiler import Compiler as Compiler
from fluxloom.toolchain.compiler import compile_flags as compile_flags
from fluxloom.toolchain.compiler import find_compiler as find_compiler
from fluxloom.toolchain.compiler import level_flags as level_flags
from fluxloom.toolchain.compiler import optimises as optimises
from fluxloom.toolchain.compiler import report_flags as report_flags
from fluxloom.toolchain.trust import user_folder as user_folder
