"""How are the arguments of programs read? Data: one YAML file a family, see `cxi.effects.shell.grammar`."""
