"""Writes docs/reference/python.md from the docstrings of the package:

    python python/reference.py [-check]

With -check it writes nothing, and fails where the page is out of date.
"""

import dataclasses
import inspect
import pathlib
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import calamp

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "reference" / "python.md"

HEAD = """# The Python package

<!-- generated: python python/reference.py -->

What `help(calamp)` says, of all that the package exports. [In Python](../python.md) has examples.
"""


def signature(name, function):
    """The call, without types: these are in the source for type checkers."""
    found = inspect.signature(function)
    taken = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name != "self"]
    text = f"{name}{found.replace(parameters=taken, return_annotation=found.empty)}"
    return "```text\n" + textwrap.fill(text, 110, subsequent_indent=" " * (len(name) + 1), break_long_words=False, break_on_hyphens=False) + "\n```\n"


def prose(text):
    """A docstring as Markdown: roles and double quotes are code, and so is what :: announces or >>> begins."""
    text = re.sub(r":\w+:`([^`]*)`", r"`\1`", inspect.cleandoc(text)).replace("``", "`")
    out = []
    for paragraph in re.split(r"\n\s*\n", re.sub(r"\.?\s*::$", ":\n", text, flags=re.M)):
        code = paragraph.startswith("    ") or paragraph.startswith(">>>")
        out.append(f"```text\n{textwrap.dedent(paragraph)}\n```" if code else paragraph)
    return "\n\n".join(p.rstrip() for p in out) + "\n"


def members(cls):
    """Methods and properties with a docstring of their own, in the order of the source."""
    for name, member in vars(cls).items():
        inner = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and inspect.isfunction(inner) and inner.__doc__:
            yield name, member


def entry(name, thing):
    out = [f"\n## {name}\n"]
    if inspect.isclass(thing):
        if not issubclass(thing, BaseException) and not dataclasses.is_dataclass(thing):
            out.append(signature(name, thing))
        out.append(prose(thing.__doc__))
        if dataclasses.is_dataclass(thing):
            fields = [f.name for f in dataclasses.fields(thing) if not f.name.startswith("_")]
            out.append("Fields: " + ", ".join(f"`{f}`" for f in fields) + ".\n")
        for method, member in members(thing):
            out.append(f"### {name}.{method}\n")
            if not isinstance(member, property):
                out.append(signature(method, member))
            out.append(prose((member.fget if isinstance(member, property) else member).__doc__))
    else:
        out += [signature(name, thing), prose(thing.__doc__)]
    return "\n".join(out)


def page():
    return HEAD + "".join(entry(name, getattr(calamp, name)) for name in calamp.__all__)


def main():
    if sys.argv[1:] == ["-check"]:
        if PAGE.read_text(encoding="utf-8") != page():
            sys.exit("docs/reference/python.md is out of date: python python/reference.py writes it")
    elif sys.argv[1:]:
        sys.exit("usage: reference.py [-check]")
    else:
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
