"""Execute chapters: ``book/<name>.md`` in, ``book/<name>.ipynb`` out.

    python -m tools.chapters            every chapter
    python -m tools.chapters moons      one of them

The md is what people edit and review; the ipynb is written here and nowhere else, so that what it shows
was computed by the code beside it. Two runs on one machine write the same bytes. A chapter whose code
fails leaves its old ipynb as it was. A chapter of which only the prose has changed, since it was executed under
this `versions.stamp` and these settings, keeps its outputs and is not executed again (--again: it is).
"""

import argparse
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import jupytext
import nbformat
from bookkit import versions
from bookkit.repo import BOOK, digest, find_chapters, write_atomically
from jupyter_client.kernelspec import NoSuchKernel
from jupytext.myst import MystMetadataParsingError
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.reader import NotJSONError

CELL_TIMEOUT = 3600  # seconds; a machine may be busy
ENVIRONMENT = {  # of a kernel that executes a chapter, beside the settings of `bookkit.environment`
    "BNN_PROGRESS": "off",  # progress lines are for whoever watches; nobody does here (hbnn.sampling)
    "LC_ALL": "C.UTF-8",
    "PYTHONUTF8": "1",
}
# what a kernel would read before our settings are in force, or reads from a user's home
LEFT_OUT = (
    "PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME",
    "IPYTHONDIR", "COLUMNS", "LINES", "GLIBC_TUNABLES", "LD_PRELOAD", "TZ",
    "BNN_POSTERIORS",  # draws that others sampled are for readers
)  # fmt: skip
# what a kernel reports of itself names the patch release of Python, which changes nothing that a reader sees
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python", "pygments_lexer": "ipython3"}


class ChapterError(Exception):
    """A chapter could not be executed; the message says which, where and why."""


def kernel_environment():
    """The environment variables of a kernel that executes a chapter (dict): this process's, less what disturbs."""
    kept = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    # a user's start-up files belong to the user; kernels write their history there. And an environment that two
    # checkouts share may hold the other one's packages
    ours = os.pathsep.join(filter(None, [str(BOOK), kept.get("PYTHONPATH")]))
    return kept | ENVIRONMENT | {"IPYTHONDIR": _make_profile().name, "PYTHONPATH": ours}


@lru_cache
def _make_profile():
    """An empty folder, without anybody's start-up files, that goes with this process."""
    return tempfile.TemporaryDirectory(prefix="hbnn-ipython-")


def list_sources(nb):
    """List the sources of a notebook's code cells: what has to be run again when it changes."""
    return [cell.source for cell in nb.cells if cell.cell_type == "code"]


def stamp(nb):
    """What outputs are computed under, the settings of the machine apart (dict): see `versions.stamp`."""
    return versions.stamp("\n".join(list_sources(nb)))


def join_streams(outputs):
    """New outputs, what a cell printed between two displays joined into one stdout and one stderr.

    The kernel sends printed text in chunks whenever a timer fires, so the chunks, and the order of stdout
    and stderr among them, differ from run to run.
    """
    joined, printed = [], {}
    for output in [*outputs, None]:
        if output is not None and output["output_type"] == "stream":
            printed[output["name"]] = printed.get(output["name"], "") + output["text"]
            continue
        for name in sorted(printed, reverse=True):  # stdout first
            joined.append(nbformat.v4.new_output("stream", name=name, text=printed[name]))
        printed = {}
        if output is not None:
            joined.append(output)
    return joined


def execute(path, again=True):
    """Execute a chapter (Path of its md) in a fresh kernel, in its own folder; returns the ipynb written beside it.

    Without `again` not if a run would repeat what the notebook holds.

    Raises
    ------
    ChapterError
        When a cell's options are no YAML, or a cell fails or takes longer than an hour, or the kernel dies. No file is
        changed then.
    """
    path = Path(path)
    try:
        nb = jupytext.read(path, fmt="md:myst")
    except MystMetadataParsingError as error:  # a colon in a caption without quotes, mostly
        raise ChapterError(f"{path}: {error}") from None
    _name_cells(nb)
    target = path.with_suffix(".ipynb")
    if again or not _reuse(nb, target):
        _run(nb, path)
    _settle(nb)
    _write(nb, target)
    return target


def _reuse(nb, target):
    """Take the outputs from the notebook that is there, if a run would write the same; returns whether it was so."""
    old = _read(target)
    same = old.metadata.get("bnn") == {"stamp": stamp(nb), "machine": versions.machine()} and _has_code(old, nb)
    if same:
        _take_outputs(old, nb)
    return same


def _read(target):
    """The notebook that is there, or an empty one."""
    try:
        return nbformat.read(target, as_version=4)
    except (FileNotFoundError, NotJSONError):
        return nbformat.v4.new_notebook()


def bring_in_step(path):
    """Write a chapter's prose into its notebook, where the code is that which was run; nothing is executed.

    Returns whether it was written: it was there, and said something else.
    """
    nb, target = jupytext.read(path, fmt="md:myst"), Path(path).with_suffix(".ipynb")
    old = _read(target)
    if not _has_code(old, nb):
        return False
    _name_cells(nb)
    _take_outputs(old, nb)
    nb.metadata |= {key: old.metadata[key] for key in ("jupytext", "language_info", "bnn")}
    nb.nbformat, nb.nbformat_minor = old.nbformat, old.nbformat_minor
    if nb == old:
        return False
    _write(nb, target)
    return True


def _has_code(old, nb):
    """Whether an older notebook was executed with the code of another, and the tables as they are."""
    executed = old.metadata.get("bnn", {}).get("stamp", {}).get("code")
    return list_sources(old) == list_sources(nb) and executed == stamp(nb)["code"]


def _take_outputs(old, nb):
    """Give a notebook the outputs of an older one with the same code."""
    code = [[cell for cell in book.cells if cell.cell_type == "code"] for book in (old, nb)]
    for before, now in zip(*code, strict=True):
        now.execution_count, now.outputs = before.execution_count, before.outputs


def _name_cells(nb):
    """Give each cell an id made from its content, so that a new cell does not rename those after it."""
    seen = {}
    for cell in nb.cells:
        name = f"{cell.cell_type}-{digest(cell.source)[:8]}"
        seen[name] = seen.get(name, 0) + 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"


def _run(nb, path):
    client = NotebookClient(
        nb,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.resolve().parent)}},
        timeout=CELL_TIMEOUT,
        record_timing=False,
        # widgets draw progress bars only; their state is neither readable nor the same twice
        store_widget_state=False,
    )
    try:
        client.execute(env=kernel_environment())
    except (CellExecutionError, CellTimeoutError, DeadKernelError, NoSuchKernel) as error:
        raise ChapterError(f"{path}, {_locate_failure(nb)}:\n{error}") from None


def _locate_failure(nb):
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    started = [i for i, cell in enumerate(code, 1) if cell.execution_count is not None or cell.outputs]
    return f"code cell {started[-1] if started else 1}"


def _settle(nb):
    """Leave in the notebook only what a second run would write again, and say what was run and where."""
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = join_streams(cell.outputs)
            cell.metadata.pop("execution", None)
    nb.metadata.pop("widgets", None)
    # the header that jupytext read holds its version number
    nb.metadata["jupytext"] = {"formats": "ipynb,md:myst"}
    nb.metadata["language_info"] = dict(LANGUAGE)
    nb.metadata["bnn"] = {"stamp": stamp(nb), "machine": versions.machine()}
    nb.nbformat, nb.nbformat_minor = 4, 5


def _write(nb, target):
    """Write all of the notebook or nothing."""
    text = nbformat.writes(nbformat.from_dict(nb))
    nbformat.validate(nbformat.reads(text, as_version=4))
    write_atomically(target, text + "\n")


def _select(names, book):
    chapters = {path.stem: path for path in find_chapters(book)}
    wanted = [Path(name).stem for name in names] or list(chapters)
    unknown = [name for name in wanted if name not in chapters]
    if unknown:
        raise ChapterError(f"No chapter {', '.join(unknown)} in {book}; there are: {', '.join(chapters) or 'none'}.")
    return [chapters[name] for name in wanted]


def main(arguments=None, book=BOOK):
    """Execute the chapters named in `arguments` (default: all). Returns the exit status."""
    parser = argparse.ArgumentParser(description="Execute book/<name>.md and write book/<name>.ipynb.")
    parser.add_argument("names", nargs="*", metavar="name", help="a chapter, without its suffix (default: all)")
    parser.add_argument("--again", action="store_true", help="execute even where only the prose has changed")
    parser.add_argument("--prose", action="store_true", help="execute nothing: write changed prose into the notebooks")
    failed = False
    asked = parser.parse_args(arguments)
    try:
        chapters = _select(asked.names, book)
    except ChapterError as error:
        print(error, file=sys.stderr)
        return 2
    if asked.prose:
        changed = [path.stem for path in chapters if bring_in_step(path)]
        print(f"prose written into the notebooks of {', '.join(changed)}" if changed else "notebooks are in step")
        return 0
    for path in chapters:
        print(f"{path.stem} … ", end="", flush=True)
        try:
            print(f"written to {execute(path, asked.again)}", flush=True)
        except ChapterError as error:
            failed = True
            print(f"failed\n{error}", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
