"""Faults in stored notebooks: what each does to one of them, as a function of the notebook, and how they are judged.

A tampered notebook is compared with the honest one, which stands for a fresh run, as nbval would; and asked what every
chapter is asked (tests/test_chapters.py). No kernel is needed. A function that finds nothing to tamper with raises a
LookupError: the fault is stale.
"""

import base64
import inspect
import io
import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import checks
import nbformat
import nbval_outputs
import numpy as np
import outputs
import test_chapters
from bnn.claims import MIME
from nbformat.v4 import new_output
from PIL import Image
from tools import chapters

PNG = "image/png"
ESTIMATE = re.compile(r"([-−]?\d[\d,]*(?:\.\d+)?) ± (\d+(?:\.\d+)?)(?: \(n=(\d+)\))?")


@dataclass(frozen=True)
class Tampering:
    """`tamper` changes a notebook of `chapter` in place; `what` says how. The notebook is sealed anew, or not."""

    chapter: str
    tamper: callable
    what: str
    sealed: bool = True

    @property
    def name(self):
        return f"{self.chapter}.ipynb: {self.what}"


# --- where, in a notebook


def find_cell(nb, holds, number=0):
    """The code cell, of those for which `holds`, at a place; LookupError where there is none."""
    found = [cell for cell in checks.list_code(nb) if holds(cell)]
    if not -len(found) <= number < len(found):
        raise LookupError("stale: the notebook has no such cell")
    return found[number]


def get_plain(cell):
    """All plain text of a cell's outputs."""
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs)


def is_picture(cell):
    return any(PNG in output.get("data", {}) for output in cell.outputs)


def is_claims(cell):
    return any(MIME in output.get("data", {}) for output in cell.outputs)


def is_table(cell):
    return any("text/html" in output.get("data", {}) for output in cell.outputs) and not is_claims(cell)


def replace(cell, old, new, count=1):
    """Put a text in place of another in every form in which a cell's outputs have it."""
    if not any(old in get_plain(SimpleNamespace(outputs=[output])) for output in cell.outputs):
        raise LookupError(f"stale: no output holds {old!r}")
    for output in cell.outputs:
        if "text" in output:
            output.text = output.text.replace(old, new, count)
        for mime, content in output.get("data", {}).items():
            if mime.startswith("text/"):
                output.data[mime] = content.replace(old, new, count)


def exchange(text, a, b):
    return text.replace(a, "\0").replace(b, a).replace("\0", b)


# --- texts, tables, numbers


def swap_rows(cell):
    """The last two rows of a table change places."""
    for output in cell.outputs:
        data = output.get("data", {})
        if "text/html" in data:
            *_, a, b = data["text/plain"].splitlines()
            data["text/plain"] = exchange(data["text/plain"], a, b)
            *_, a, b = re.findall(r"<tr>.*?</tr>", data["text/html"])
            data["text/html"] = exchange(data["text/html"], a, b)


def change_estimate(nb, n, change):
    """Let `change` (value, error) set the first estimate from `n` seeds (None: it does not say) outside the claims."""
    for cell in checks.list_code(nb):
        for match in [] if is_claims(cell) else ESTIMATE.finditer(get_plain(cell)):
            places = len(match[2].partition(".")[2])
            value, error = float(match[1].replace(",", "").replace("−", "-")), float(match[2])
            if match[3] == n and error > 0 and places == len(match[1].partition(".")[2]):
                value, error = change(value, error)
                seeds = f" (n={n})" if n else ""
                return replace(cell, match[0], f"{value:.{places}f} ± {error:.{places}f}{seeds}")
    raise LookupError(f"stale: no estimate from {n} seeds")


def move(n):
    """A value moves by eight of its printed errors."""
    return lambda nb: change_estimate(nb, n, lambda value, error: (value + 8 * error, error))


def inflate(n):
    return lambda nb: change_estimate(nb, n, lambda value, error: (value, 10 * error))


def change_text(pattern, by):
    """The first match of a pattern in an output outside the claims becomes what `by` says, as in `re.sub`."""

    def tamper(nb):
        cell = find_cell(nb, lambda cell: not is_claims(cell) and re.search(pattern, get_plain(cell)))
        match = re.search(pattern, get_plain(cell))
        replace(cell, match[0], re.sub(pattern, by, match[0]))

    return tamper


def change_html(old, new):
    def tamper(nb):
        cell = find_cell(nb, lambda cell: is_table(cell) and old in cell.outputs[-1].data["text/html"])
        cell.outputs[-1].data["text/html"] = cell.outputs[-1].data["text/html"].replace(old, new, 1)

    return tamper


def drop_sign(nb):
    """The first number that is more than ten errors below zero loses its sign."""
    for cell in checks.list_code(nb):
        for match in [] if is_claims(cell) else ESTIMATE.finditer(get_plain(cell)):
            if float(match[1].replace(",", "").replace("−", "-")) < -10 * float(match[2]):
                return replace(cell, match[0], match[0][1:])
    raise LookupError("stale: no number is that far below zero")


# --- claims


def change_claims(change):
    """Let `change` (list of claims) edit the data, and the plain and HTML tables with it where it returns texts."""

    def tamper(nb):
        cell = find_cell(nb, is_claims)
        (output,) = [o for o in cell.outputs if MIME in o.get("data", {})]
        for mime, old, new in change(output.data[MIME], output.data) or ():
            output.data[mime] = output.data[mime].replace(old, new, 1)

    return tamper


def flip_verdict(claims, data):
    claims[0]["holds"] = not claims[0]["holds"]


def flip_verdict_everywhere(claims, data):
    held = claims[0]["holds"]
    claims[0]["holds"] = not held
    words = ("holds", "does not hold") if held else ("does not hold", "holds")
    line = next(line for line in data["text/plain"].splitlines() if line.startswith(claims[0]["claim"]))
    row = re.findall(r"<tr>.*?</tr>", data["text/html"])[1]
    new = [part[::-1].replace(words[0][::-1], words[1][::-1], 1)[::-1] for part in (line, row)]
    return ("text/plain", line, new[0]), ("text/html", row, new[1])


def remove_claim(claims, data):
    gone = claims.pop(0)
    line = next(line for line in data["text/plain"].splitlines() if line.startswith(gone["claim"]))
    row = re.findall(r"<tr>.*?</tr>", data["text/html"])[1]
    return ("text/plain", line + "\n", ""), ("text/html", row, "")


def change_criterion(claims, data):
    claims[0]["criterion"] += ", or nearly"


# --- pictures


def read_picture(cell):
    """The pixels (height, width, 4) of a cell's picture."""
    (output,) = [o for o in cell.outputs if PNG in o.get("data", {})]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(output.data[PNG]))).convert("RGBA"))


def paint(draw, number=0):
    """`draw` gives another array of pixels (height, width, 4) for a picture of the notebook."""

    def tamper(nb):
        cell = find_cell(nb, is_picture, number)
        (output,) = [o for o in cell.outputs if PNG in o.get("data", {})]
        file = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(draw(read_picture(cell)))).save(file, "png")
        output.data[PNG] = base64.b64encode(file.getvalue()).decode()

    return tamper


def lose_series(pixels):
    """All that is nearer to orange than to white, grey or blue becomes white."""
    red, _, blue, _ = np.moveaxis(pixels.astype(int), -1, 0)
    lost = (red - blue > 60)[..., None]
    if not lost.any():
        raise LookupError("stale: nothing in the picture is orange")
    return np.where(lost, np.uint8(255), pixels)


def shift(pixels):
    """The middle of the picture moves to the right by a tenth of its width; the frame stays."""
    moved, n = pixels.copy(), pixels.shape[1] // 10
    moved[n:-n, 2 * n : -n] = pixels[n:-n, n : -2 * n]
    return moved


def show_another(nb):
    """The second picture, brought to the size of the first, stands in its place."""
    second = read_picture(find_cell(nb, is_picture, 1))
    paint(lambda first: np.asarray(Image.fromarray(second).resize(first.shape[1::-1])))(nb)


# --- cells and metadata


def edit_caption(nb):
    find_cell(nb, is_picture).metadata["mystnb"]["figure"]["caption"] += " Almost always."


def edit_alt(nb):
    find_cell(nb, is_picture).metadata["mystnb"]["image"]["alt"] = "A figure."


def edit_prose(nb):
    cell = next(cell for cell in nb.cells if cell.cell_type == "markdown" and " is " in cell.source)
    cell.source = cell.source.replace(" is ", " is not ", 1)


def edit_code(nb):
    """A seed is changed after the run, and the digest of the code is made anew."""
    cell = find_cell(nb, lambda cell: "seed=0" in cell.source)
    cell.source = cell.source.replace("seed=0", "seed=3", 1)
    nb.metadata["bnn"]["source"] = chapters.digest_code(nb)


def edit_digest(nb):
    digest = nb.metadata["bnn"]["source"]
    nb.metadata["bnn"]["source"] = digest[:-1] + ("0" if digest[-1] != "0" else "1")


def edit_identity(nb):
    machine = nb.metadata["bnn"]["machine"]
    machine[next(iter(machine))] = "0" * 16


def edit_quietly(nb):
    """A change so small that no other machine's run would show it."""
    change_estimate(nb, None, lambda value, error: (value + error / 2, error))


def edit_count(nb):
    checks.list_code(nb)[3].execution_count += 1


def forget_count(nb):
    checks.list_code(nb)[3].execution_count = None


def delete_output(nb):
    find_cell(nb, lambda cell: len(cell.outputs) == 1).outputs.clear()


def add_output(nb):
    cell = find_cell(nb, lambda cell: not cell.outputs)
    cell.outputs.append(new_output("stream", name="stdout", text="all is well\n"))


def add_error(nb):
    cell = find_cell(nb, is_table)
    cell.outputs.append(new_output("error", ename="ValueError", evalue="no", traceback=[]))


def add_stderr(nb):
    cell = find_cell(nb, is_table)
    cell.outputs.insert(0, new_output("stream", name="stderr", text="RuntimeWarning: overflow\n"))


def add_tag(tag):
    return lambda nb: find_cell(nb, is_table).metadata.__setitem__("tags", [tag])


def exchange_outputs(nb):
    a, b = (find_cell(nb, is_table, number) for number in (0, 1))
    a.outputs, b.outputs = b.outputs, a.outputs


def exchange_cells(nb):
    places = [i for i, cell in enumerate(nb.cells) if cell.cell_type == "code" and cell.outputs][-3:-1]
    nb.cells[places[0]], nb.cells[places[1]] = nb.cells[places[1]], nb.cells[places[0]]


def remove_cell(nb):
    nb.cells.remove(find_cell(nb, is_table))


def edit_output_metadata(nb):
    find_cell(nb, is_picture).outputs[0].metadata["width"] = 10


def on_table(change, number):
    return lambda nb: change(find_cell(nb, is_table, number))


TAMPERINGS = [
    Tampering("yardsticks", on_table(swap_rows, 0), "two rows of exact numbers change places"),
    Tampering("yardsticks", on_table(swap_rows, 3), "two rows of estimates change places"),
    Tampering("advi_checked", on_table(swap_rows, -2), "two rows of another table change places"),
    Tampering("yardsticks", change_text(r"lpd \(nats\)", "lpd (bits)"), "another unit heads a column"),
    Tampering("yardsticks", change_text(r"13\.4 %", "13.5 %"), "an exact number moves by its last digit"),
    Tampering("yardsticks", change_text(r"certain at 2", "certain at 3"), "a count grows by a hundred"),
    Tampering("yardsticks", move(None), "a number without n moves by eight errors"),
    Tampering("yardsticks", move("20"), "a number with n=20 moves by eight errors"),
    Tampering("yardsticks", move("5"), "a number with n=5 moves by eight errors"),
    Tampering("digits_checked", move("5"), "another number with n=5 moves by eight errors"),
    Tampering("yardsticks", inflate(None), "an error without n grows tenfold"),
    Tampering("yardsticks", inflate("20"), "an error with n=20 grows tenfold"),
    Tampering("yardsticks", inflate("5"), "an error with n=5 grows tenfold"),
    Tampering("yardsticks", change_text(r"(\d) ± [\d.]+ \(n=20\)", r"\1"), "an estimate loses its error"),
    Tampering("yardsticks", change_text(r"\(n=20\)", "(n=200)"), "twenty seeds become two hundred"),
    Tampering("yardsticks", drop_sign, "a difference loses its sign"),
    Tampering("yardsticks", change_text(r"~2 \(at least 1 of 5", "~9 (at least 1 of 5"), "a diagnostic says 9 of 5"),
    Tampering("unpooled", change_text(r"~1\.0\d+ \(below", "~2.500 (below"), "an R-hat of 2.5 is below its limit"),
    Tampering("yardsticks", change_text(r": yes\)", ": no)"), "the verdict of a diagnostic is turned"),
    Tampering(
        "advi_checked",
        change_text(r"(\d)\.(\d) times the cost", r"\2.\g<1>7 times the cost"),
        "a measured number has its digits exchanged",
    ),
    Tampering("yardsticks", change_text("train ", "tra\u200bin "), "a character without width slips into printed text"),
    Tampering("yardsticks", change_html("<caption>", "<caption>\u200b"), "a character without width is in a caption"),
    Tampering("yardsticks", change_html("</table>", "</table><script>alert(1)</script>"), "a script is in a table"),
    Tampering("yardsticks", change_html("<td>", '<td style="color:white">'), "a cell of a table is made invisible"),
    Tampering("yardsticks", change_claims(flip_verdict), "a claim's verdict is turned in the data"),
    Tampering("flat_advi", change_claims(flip_verdict_everywhere), "a claim's verdict is turned everywhere"),
    Tampering("yardsticks", change_claims(remove_claim), "a claim is taken out everywhere"),
    Tampering("digits", change_claims(change_criterion), "a claim's criterion is softened"),
    Tampering("yardsticks", paint(lambda p: p[:, ::-1], 1), "a picture is mirrored"),
    Tampering("flat_advi", paint(lambda p: p[:, ::-1], -2), "another picture is mirrored"),
    Tampering("unpooled", paint(lambda p: p[::-1], 4), "a picture stands on its head"),
    Tampering("yardsticks", paint(lambda p: p[..., [2, 1, 0, 3]]), "the colours of a picture are exchanged"),
    Tampering("unpooled", paint(lambda p: p[..., [2, 1, 0, 3]], 4), "the colours of another picture are exchanged"),
    Tampering("yardsticks", paint(lose_series, 1), "a picture loses one of its series"),
    Tampering("yardsticks", paint(shift, 1), "the middle of a picture is moved to the right"),
    Tampering("yardsticks", show_another, "a picture stands under another's caption"),
    Tampering("yardsticks", paint(lambda p: np.full_like(p, 255)), "a picture is blank"),
    Tampering("yardsticks", paint(lambda p: p[::2, ::2]), "a picture has half its size"),
    Tampering("yardsticks", edit_output_metadata, "a picture is shown ten pixels wide"),
    Tampering("yardsticks", edit_caption, "the caption is changed in one of the pair"),
    Tampering("yardsticks", edit_alt, "the alternative text is changed in one of the pair"),
    Tampering("yardsticks", edit_prose, "a sentence is negated in one of the pair"),
    Tampering("yardsticks", edit_code, "the code is changed after the run, its digest made anew"),
    Tampering("yardsticks", edit_digest, "the digest of the code is edited"),
    Tampering("yardsticks", edit_identity, "the identity of what computed it is edited", sealed=False),
    Tampering("yardsticks", edit_quietly, "a number moves by half an error, by hand", sealed=False),
    Tampering("yardsticks", edit_count, "an execution count is edited"),
    Tampering("yardsticks", forget_count, "an execution count is taken away"),
    Tampering("yardsticks", delete_output, "an output is deleted"),
    Tampering("yardsticks", add_output, "an output is added"),
    Tampering("yardsticks", add_error, "an exception is stored"),
    Tampering("yardsticks", add_stderr, "a warning is stored"),
    Tampering("yardsticks", add_tag("nbval-skip"), "a tag keeps a cell from being compared"),
    Tampering("yardsticks", add_tag("nbval-ignore-output"), "a tag lets an output be ignored"),
    Tampering("yardsticks", exchange_outputs, "two cells have each other's outputs"),
    Tampering("yardsticks", exchange_cells, "two cells change places"),
    Tampering("yardsticks", remove_cell, "a cell is taken out"),
]


# --- judging


class Chapter:
    """A chapter with its stored notebook as the honest one, written here (`strict`) or elsewhere."""

    def __init__(self, name, strict):
        self.md, self.strict = chapters.BOOK / f"{name}.md", strict
        self.honest = self.read()

    def read(self):
        """The honest notebook, anew."""
        nb = nbformat.read(self.md.with_suffix(".ipynb"), as_version=4)
        nb.metadata["bnn"]["machine"] = chapters.machine() | ({} if self.strict else {"requirements": "another"})
        nb.metadata["bnn"]["seal"] = chapters.seal(nb)
        return nb

    def make(self, tampering):
        """The notebook with a fault in it; LookupError where there is nothing to tamper with."""
        nb = self.read()
        tampering.tamper(nb)
        if tampering.sealed:
            nb.metadata["bnn"]["seal"] = chapters.seal(nb)
        return nb

    def judge(self, nb):
        """The first complaint about a notebook, and who makes it; None where nobody does."""
        return self._ask(nb) or self._compare(nb)

    def _ask(self, nb):
        """What every chapter is asked."""
        with tempfile.TemporaryDirectory() as folder:
            md = Path(folder, self.md.name)
            md.write_bytes(self.md.read_bytes())
            md.with_suffix(".ipynb").write_text(json.dumps(nb), encoding="utf-8")
            for name, test in vars(test_chapters).items():
                wanted = inspect.signature(test).parameters.keys() if name.startswith("test_") else ()
                if wanted and wanted <= {"md", "nb"}:
                    try:
                        test(**{key: value for key, value in {"md": md, "nb": nb}.items() if key in wanted})
                    except AssertionError as error:
                        return f"test_chapters.py::{name}", str(error)
        return None

    def _compare(self, nb):
        """What nbval would say of the cells, were the honest outputs those of a fresh run."""
        parent = SimpleNamespace(nb=nb)
        for number, (stored, fresh) in enumerate(zip(checks.list_code(nb), checks.list_code(self.honest), strict=True)):
            item = SimpleNamespace(parent=parent, path=self.md, cell_num=number, cell=stored, user_properties=[])
            joined = [chapters.join_streams(cell.outputs) for cell in (fresh, stored)]
            if not nbval_outputs._compare_outputs(item, *joined):
                return f"nbval, cell {number}", item.comparison_traceback[0]
        drift = outputs.find_drift(parent.moves, nbval_outputs._find_record(item).get("drift"))
        return ("nbval, the whole chapter", drift[0]) if drift else None


def judge_all(tamperings, strict):
    """Each tampering with who complains first, or "", and why nothing can be said of it, or ""."""
    known = {}
    for tampering in tamperings:
        if tampering.chapter not in known:
            chapter = Chapter(tampering.chapter, strict)
            known[tampering.chapter] = chapter, chapter.judge(chapter.honest)
        chapter, complaint = known[tampering.chapter]
        if complaint:
            yield tampering, "", f"{complaint[0]} complains of the honest notebook"
            continue
        try:
            yield tampering, (chapter.judge(chapter.make(tampering)) or ("",))[0], ""
        except LookupError as error:
            yield tampering, "", str(error)
