"""Which code of the operator's runs, and is it the code that a person accepted?

- A Python extractor runs inside the gate, so its file is pinned in `cxi.lock`. INVARIANT (pinned-code): only bytes whose digest
  is the pinned one are executed, and they are executed as they were read: the file is not opened again.
- A file without a pin is not executed; its declassifier then releases nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from cxi.authority.declassifier import Declassifier
from cxi.canonical import Digest, digest_bytes
from cxi.config.reader import Reader
from cxi.errors import Problem


class CodeFiles:
    """The files of Python extractors, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data: dict[str, bytes] = {}
        self._modules: dict[str, ModuleType | None] = {}

    @property
    def pins(self) -> Mapping[str, Digest]:
        """The digest of each file that was read."""
        return {file: digest_bytes(data) for file, data in self._data.items()}

    def __call__(self, file: str) -> Digest | None:
        if file not in self._data:
            try:
                self._data[file] = (self._folder / file).read_bytes()
            except OSError:
                return None
        return digest_bytes(self._data[file])

    def load(self, reader: Reader, declassifier: Declassifier, pins: Mapping[str, Digest]) -> Declassifier:
        """The declassifier with its function, where its file is the pinned one; else as it is."""
        file, _, name = declassifier.extract.rpartition(":")
        if not file or file not in self._data or pins.get(file) != digest_bytes(self._data[file]):
            return declassifier
        if file not in self._modules:
            self._modules[file] = self._execute(reader, file)
        module = self._modules[file]
        function = getattr(module, name, None) if module is not None else None
        if not callable(function):
            if module is not None:
                reader.note(Problem(file, 0, f"there is no function `{name}`", f"define it, as `{declassifier.extract}` says"))
            return declassifier
        return replace(declassifier, function=function)

    def _execute(self, reader: Reader, file: str) -> ModuleType | None:
        module = ModuleType(f"cxi_extractor_{Path(file).stem}")
        module.__file__ = str(self._folder / file)
        try:
            exec(compile(self._data[file], file, "exec"), module.__dict__)  # noqa: S102  # pinned by a person
        except Exception as error:  # noqa: BLE001  # whatever the operator's code raises is a problem of the configuration
            line = error.lineno if isinstance(error, SyntaxError) and error.lineno else 0
            reader.note(Problem(file, line, f"the file does not load: {type(error).__name__}: {error}", "mend the file"))
            return None
        return module
