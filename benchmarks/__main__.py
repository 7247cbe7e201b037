"""Run benchmarks by name, or all of them: ``python -m benchmarks [NAME ...] [--write]``."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import benchmarks


def main(wanted: list[str]) -> None:
    """Run the *wanted* modules, or every module with a ``main``."""
    names = [module.name for module in iter_modules(benchmarks.__path__) if module.name[0] != "_"]
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        raise SystemExit(f"benchmarks={', '.join(unknown)}: known are {', '.join(names)}")
    for name in wanted or names:
        print(f"## {name}\n")
        import_module(f"benchmarks.{name}").main()
        print()


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if not word.startswith("--")])  # flags are the modules'
