"""Kind `shell`: one bash text, run in a working directory.

- Inputs: `text`; `cwd` (the root, where it is not given); `home`; `env`, an object of the variables that the shell starts with:
  without it no variable is known.
- The shell is taken to start as `bash -c` does: no aliases, no functions, no `BASH_ENV`, `CDPATH` or `GLOBIGNORE`, a `PATH` of
  system folders (unless `env` says otherwise), descriptors that are no terminal, a umask of 022.
- What is read whole is `checked`; what only running could tell is in its `proc.exec` atom, and no more is claimed.

        effect: {adapter: shell, text: command, cwd: workdir}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cxi.effects.base import Atom, Effect, Snapshot
from cxi.effects.given import give, give_text
from cxi.effects.hidden import git_atoms
from cxi.effects.shell.left import collect
from cxi.effects.shell.read import read
from cxi.effects.shell.run import Machine
from cxi.effects.shell.state import State, Variable
from cxi.effects.shell.stop import KNOW, READ, Stop
from cxi.errors import Code, Refused
from cxi.manifest import Assurance, CanonicalCall
from cxi.values.base import EntryKind


class ShellAdapter:
    """Reads bash texts."""

    kind: Final = "shell"
    version: Final = 1
    inputs: Final = frozenset({"text", "cwd", "home", "env"})

    def plan(self, call: CanonicalCall, inputs: Mapping[str, str], snapshot: Snapshot) -> Effect | Refused:
        """What the text would do."""
        text = give_text(call, inputs, "text")
        if isinstance(text, Refused):
            return text
        field = inputs.get("text", "text")
        if text is None:
            return Refused.of(Code.EFFECT_UNREADABLE, "no text is given", where=field)
        cwd, home, env = give_text(call, inputs, "cwd"), give_text(call, inputs, "home"), _environment(call, inputs)
        for given in (cwd, home, env):
            if isinstance(given, Refused):
                return given
        effect = plan_text(
            text,
            snapshot,
            cwd=cwd if isinstance(cwd, str) else "",
            home=home if isinstance(home, str) else "",
            env=env if isinstance(env, Mapping) else None,
            field="" if field.startswith("=") else field,
        )
        if isinstance(effect, Effect) and not effect.atoms and text.strip():
            # What only prints has to run all the same, and shows where it runs.
            return Effect(effect.adapter, (Atom("fs.read", cwd if isinstance(cwd, str) and cwd else ".", {}),), effect.assurance)
        return effect


def plan_text(
    text: str, snapshot: Snapshot, *, cwd: str = "", home: str = "", env: Mapping[str, str] | None = None, field: str = ""
) -> Effect | Refused:
    """What a text would do.

    Args:
        text: The text.
        snapshot: The world.
        cwd: Where it starts, relative to the root or absolute.
        home: The home folder; empty where it is not known.
        env: Every variable that it starts with; None where they are not known.
        field: The call's field, for refusals.
    """
    root = snapshot.root
    if not root.case_sensitive or root.normalizes:
        return Refused.of(KNOW, "the file system folds names, which globs do not", where=field)
    try:
        state = _start(snapshot, cwd, home, env)
        states = Machine().script([state], read(text))
        atoms = collect(states, snapshot)
        for atom in atoms:
            f"{atom.target}{atom.attributes.get('to', '')}{atom.attributes.get('argv', '')}".encode()
        return Effect("shell/1", (*atoms, *git_atoms(snapshot, atoms)), Assurance.CHECKED)
    except Stop as error:
        return error.refuse(text, field)
    except UnicodeEncodeError:
        return Refused.of(KNOW, "a name that is not UTF-8", where=field)
    except RecursionError:
        return Refused.of(Code.TOO_LARGE, "the text is nested too deeply", where=field)


def _start(snapshot: Snapshot, cwd: str, home: str, env: Mapping[str, str] | None) -> State:
    root = snapshot.root.path
    variables = {name: Variable(value, True) for name, value in (env or {}).items()}
    if home:
        variables["HOME"] = Variable(home, True)
    state = State(snapshot, root, variables, env is not None, initial=dict(variables))
    for name in ("CDPATH", "GLOBIGNORE", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "GLOBSORT"):
        if env is not None and env.get(name):
            raise Stop(KNOW, f"`{name}` is set where the shell starts")
    place = state.resolve(cwd or root)
    if place.problem or state.look(place.path).kind is not EntryKind.FOLDER:
        raise Stop(Code.EFFECT_INEXACT, f"the working directory `{cwd or root}` is no folder")
    state.cwd = place.path
    return state


def _environment(call: CanonicalCall, inputs: Mapping[str, str]) -> Mapping[str, str] | Refused | None:
    found = give(call, inputs["env"]) if "env" in inputs else ()
    if not found or (len(found) == 1 and found[0].value is None):
        return None
    value = found[0].value
    if len(found) > 1 or not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        return Refused.of(READ, "`env` is no object of texts", where=found[0].field or "env")
    return {str(name): str(one) for name, one in value.items()}
