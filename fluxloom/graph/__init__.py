"""Plans, colourings, inverse maps and orderings: arrays in, arrays out, computed by compiled code.

Read `csr` (patterns) and `inverse` (who refers to a target) first, then `colour` and `blocks` (races), `gather`,
`tiles`.

Tables are C-contiguous int32 arrays of shape ``(n, arity)`` (or ``(n,)``, arity 1) whose entries number
targets from 0; what has another type is refused, not copied. Offsets are int64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fluxloom.core.packages import import_late

if TYPE_CHECKING:
    from fluxloom.graph.blocks import BlockPlan, two_level_plan
    from fluxloom.graph.colour import ElementColours, colour_elements, colour_permutation
    from fluxloom.graph.csr import (
        Csr,
        PairEntries,
        element_graph,
        pair_entries,
        rows_to_csr,
        target_graph,
        transpose_pattern,
    )
    from fluxloom.graph.gather import (
        BlockTargets,
        EllInverse,
        FlatInverse,
        block_targets,
        ell_fill,
        ell_inverse,
        flat_inverse,
    )
    from fluxloom.graph.inverse import InverseMap, RaggedInverse, SlicedInverse, inverse_map, inverse_ragged, sliced
    from fluxloom.graph.native import check_range, covers, is_injective
    from fluxloom.graph.tiles import TilePlan, TileSegments, target_tiles, tile_segments, tiled_elements

__all__ = [
    "BlockPlan",
    "BlockTargets",
    "Csr",
    "ElementColours",
    "EllInverse",
    "FlatInverse",
    "InverseMap",
    "PairEntries",
    "RaggedInverse",
    "SlicedInverse",
    "TilePlan",
    "TileSegments",
    "block_targets",
    "check_range",
    "colour_elements",
    "colour_permutation",
    "covers",
    "element_graph",
    "ell_fill",
    "ell_inverse",
    "flat_inverse",
    "inverse_map",
    "inverse_ragged",
    "is_injective",
    "pair_entries",
    "rows_to_csr",
    "sliced",
    "target_graph",
    "target_tiles",
    "tile_segments",
    "tiled_elements",
    "transpose_pattern",
    "two_level_plan",
]

if not TYPE_CHECKING:
    import_late(__name__, {
        "fluxloom.graph.blocks": "BlockPlan two_level_plan",
        "fluxloom.graph.colour": "ElementColours colour_elements colour_permutation",
        "fluxloom.graph.csr": "Csr PairEntries element_graph pair_entries rows_to_csr target_graph transpose_pattern",
        "fluxloom.graph.gather": "BlockTargets EllInverse FlatInverse block_targets ell_fill ell_inverse flat_inverse",
        "fluxloom.graph.inverse": "InverseMap RaggedInverse SlicedInverse inverse_map inverse_ragged sliced",
        "fluxloom.graph.native": "check_range covers is_injective",
        "fluxloom.graph.tiles": "TilePlan TileSegments target_tiles tile_segments tiled_elements",
    })  # fmt: skip
