"""The pages of the API reference: one for each package, all its modules on it, filled in by autodoc."""

from __future__ import annotations

from pathlib import Path

_INTRODUCTION = """# Python API

Generated from the docstrings. What most users need is in `hodyn_ros` itself:

{names}

Each package has a page.

{packages}

```{{toctree}}
:hidden:

{toctree}
```
"""

_ROBOT, _CALLS = "hodyn_ros.dynamics.robot", "hodyn_ros.dynamics.calls"  # the latter stand with the robot


def api_pages(root: Path) -> dict[str, str]:
    """Return the pages by path below docs/."""
    source = root / "hodyn_ros"
    packages: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        if path.stem.startswith("__"):
            continue
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        packages.setdefault(module.rpartition(".")[0], []).append(module)
    import hodyn_ros

    public = [(name, getattr(hodyn_ros, name).__module__) for name in hodyn_ros.__all__]
    pages = {
        "reference/api/index.md": _INTRODUCTION.format(
            names="\n".join(f"- {{py:class}}`~{module}.{name}`" for name, module in public),
            packages="\n".join(f"- [{name}]({name}.md)" for name in packages),
            toctree="\n".join(packages),
        )
    }
    for package, modules in packages.items():
        parts = [f"# {package}", automodule(package, "")]
        for module in modules:
            options = "   :members:\n"
            if module == _ROBOT:
                options += "   :inherited-members: object\n"
            elif package == _CALLS:
                options = ""
            parts += [f"## {module.removeprefix(package + '.')}", automodule(module, options)]
        pages[f"reference/api/{package}.md"] = "\n\n".join(parts)
    return pages


def automodule(module: str, options: str) -> str:
    """Return the directive of autodoc for a module."""
    return f"```{{eval-rst}}\n.. automodule:: {module}\n{options}```\n"
