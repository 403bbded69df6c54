"""What did the operator say? Files, lock, packs; all errors are found here.

- `load.load` reads everything and gives a frozen `model.Configuration`, or raises one `ConfigError` with every problem.
- `check.lint` counts the surface and names concessions and gaps; `lock` pins what servers and files could change later.
- `naming` is how tools are exposed; `surface` is what policies see of them; `schema` is what editors see.
"""
