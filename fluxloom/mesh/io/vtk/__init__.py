"""Files of VTK: VTU and VTKHDF.

Read `cells` (meshes as VTK's arrays) first, then `vtkhdf`, `vtu` (reading), `vtu_writer`. `pieces` joins what was
written in parts, `polyhedra` reads faces of cells.
"""
