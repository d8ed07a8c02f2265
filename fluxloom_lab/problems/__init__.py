"""Problems that benchmarks, verifications and tests share: meshes, boundary conditions, bodies, and what is compared.

Begin with `compressible_cases` (boxes with known answers) and `tetra_cavity` (the cavity of tetrahedra); `boxes` is
what boxes of all kinds share. `wing` makes meshes round a wing, `published_cases` has the flows that others published.
"""
