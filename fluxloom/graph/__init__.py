"""Plans, colourings, inverse maps and orderings: arrays in, arrays out, computed by compiled code.

Tables are C-contiguous int32 arrays of shape ``(n, arity)`` (or ``(n,)``, arity 1) whose entries number
targets from 0; what has another type is refused, not copied. Offsets are int64.
"""

from fluxloom.graph.blocks import BlockPlan as BlockPlan
from fluxloom.graph.blocks import two_level_plan as two_level_plan
from fluxloom.graph.check import covers as covers
from fluxloom.graph.check import is_injective as is_injective
from fluxloom.graph.colour import ElementColours as ElementColours
from fluxloom.graph.colour import colour_elements as colour_elements
from fluxloom.graph.colour import colour_permutation as colour_permutation
from fluxloom.graph.csr import Csr as Csr
from fluxloom.graph.csr import PairEntries as PairEntries
from fluxloom.graph.csr import element_graph as element_graph
from fluxloom.graph.csr import pair_entries as pair_entries
from fluxloom.graph.csr import rows_to_csr as rows_to_csr
from fluxloom.graph.csr import target_graph as target_graph
from fluxloom.graph.csr import transpose_pattern as transpose_pattern
from fluxloom.graph.gather import BlockTargets as BlockTargets
from fluxloom.graph.gather import EllInverse as EllInverse
from fluxloom.graph.gather import FlatInverse as FlatInverse
from fluxloom.graph.gather import StagedTable as StagedTable
from fluxloom.graph.gather import StagedTiles as StagedTiles
from fluxloom.graph.gather import block_targets as block_targets
from fluxloom.graph.gather import ell_fill as ell_fill
from fluxloom.graph.gather import ell_inverse as ell_inverse
from fluxloom.graph.gather import flat_inverse as flat_inverse
from fluxloom.graph.gather import staged_tiles as staged_tiles
from fluxloom.graph.inverse import InverseMap as InverseMap
from fluxloom.graph.inverse import RaggedInverse as RaggedInverse
from fluxloom.graph.inverse import SlicedInverse as SlicedInverse
from fluxloom.graph.inverse import inverse_map as inverse_map
from fluxloom.graph.inverse import inverse_ragged as inverse_ragged
from fluxloom.graph.inverse import sliced as sliced
from fluxloom.graph.native import check_range as check_range
from fluxloom.graph.permute import first_touch_order as first_touch_order
from fluxloom.graph.permute import invert_permutation as invert_permutation
from fluxloom.graph.permute import permute_rows as permute_rows
from fluxloom.graph.permute import renumber as renumber
from fluxloom.graph.tiles import TilePlan as TilePlan
from fluxloom.graph.tiles import TileSegments as TileSegments
from fluxloom.graph.tiles import target_tiles as target_tiles
from fluxloom.graph.tiles import tile_segments as tile_segments
from fluxloom.graph.tiles import tiled_elements as tiled_elements
