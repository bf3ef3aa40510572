"""Parts of pages that are made from what the book knows of itself: the claims, the sliders, the colophon."""

import html
import json
import re
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, urlencode

import nbformat
import yaml
from bookkit.claims import MIME, find_verdicts
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.utils.math import tex2unichar
from PIL import Image
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from tools import branches

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
SYMBOLS = tex2unichar.mathalpha | tex2unichar.mathbin | tex2unichar.mathop | tex2unichar.mathord | tex2unichar.mathrel
SYMBOLS |= {name: name for name in ("exp", "log", "max", "min", "tanh")}
CLAIMS_HEADING = "What this chapter claims"

# The register. What each chapter's claims are about, if not the moons:
ABOUT = {
    "inference": (
        "flat_advi", "minibatch_advi", "weight_correlations", "approximations", "convergence", "typing_mistakes",
    ),
    "other data": ("workflow", "digits", "own_data", "own_file", "growth_curves", "real_tables", "class_gains"),
    "code": ("engines",),
}  # fmt: skip
# when a criterion was set, by what a claim says of it
WHEN = {"first": "before any result", "": "with the page", "after": "after the result"}
# the ten on which the chapters rest most, in this order
FIRST = (
    "replication:unpooled-lpd", "replication:control-lpd", "replication:beats-process",
    "replication:angles", "replication:covers", "real_tables:leads-somewhere",
    "one_choice:always-helps", "replication:last-largest", "informed_priors:again-alike", "convergence:every-run",
)  # fmt: skip


def list_chapters(*, numbered=False):
    """The chapters in the order of _toc.yml, or those of numbered parts: list of (caption of the part, list of names).

    Pages that are looked up or taught from may be notebooks, too; they have no number.
    """
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    parts = []
    for part in toc["parts"]:
        names = [Path(c["file"]).stem for c in part["chapters"] if c["file"].endswith(".ipynb")]
        if names and ("numbered" in part or not numbered):
            parts.append((part["caption"], names))
    return parts


def read_title(name):
    """First heading of a chapter."""
    return re.search(r"^# (.+)$", (BOOK / f"{name}.md").read_text(encoding="utf8"), flags=re.MULTILINE).group(1)


def measure_picture(file):
    """Width and height at which a picture (Path, or bytes in a file) is shown, in CSS pixels.

    That is half of its own at 200 pixels to the inch or more.
    """
    with Image.open(file) as picture:
        density = 2 if picture.info.get("dpi", (0, 0))[0] >= 200 else 1
        return tuple(side // density for side in picture.size)


def spell_formula(tex):
    """A formula within a sentence, as plain text: σ and N(0, 1), not \\sigma and \\mathrm{N}(0, 1)."""
    return re.sub(r"\\([a-zA-Z]+)|\\.|[{}$]", lambda match: SYMBOLS.get(match[1], ""), tex)


def link_chapter(name):
    """A chapter's title as a link, for a page beside it."""
    return f'<a href="{name}.html">{html.escape(read_title(name))}</a>'


def make_role(show, *given):
    """A role that shows the node `show(env, text, *given)`; its LookupError or ValueError is an error of the page."""

    def role(name, rawtext, text, lineno, inliner, options=None, content=None):
        try:
            return [show(inliner.document.settings.env, text, *given)], []
        except (LookupError, ValueError) as error:
            return [], [inliner.reporter.error(error.args[0], line=lineno)]

    return role


class RawTable(SphinxDirective):
    """A directive that shows one table, made as HTML."""

    def show(self, caption, columns, rows, *sources):
        """The table as a node; the page is made again when one of `sources` (Paths) changes. Rows are HTML."""
        for source in sources:
            self.env.note_dependency(str(source))
        head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
        body = "".join(map(self.write_row, rows))
        table = (
            f'<div class="table-scroll"><table class="bnn"><caption>{html.escape(caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>".replace("<tbody></tbody>", "")
        )
        return nodes.raw("", table, format="html")

    @staticmethod
    def write_row(row):
        """One row; a row of one cell heads those below it."""
        if len(row) == 1:
            return f'</tbody><tbody><tr class="part"><th scope="rowgroup" colspan="7">{row[0]}</th></tr>'
        kinds = ["figure" if re.fullmatch(r"[\d.,]+( \w+)?", cell) else "text" for cell in row[1:]]
        cells = "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in zip(row[1:], kinds, strict=True))
        return f'<tr><th scope="row">{row[0]}</th>{cells}</tr>'


class ClaimsRegister(RawTable):
    """All claims, each linked to its row in its chapter: the ten that matter most, then the others by what about."""

    def run(self):
        path = BOOK / "claims.json"
        claims = json.loads(path.read_text())
        verdicts = find_verdicts(claims)
        self.rows = {f"{c['chapter']}:{c['id']}": write_claim(c, v) for c, v in zip(claims, verdicts, strict=True)}
        first = [self.rows[key] for key in FIRST if key in self.rows]
        columns = ["Claim", "Value", "Criterion", "Set", "Whose", "Verdict"]
        shown = [self.show("The ten on which this book rests most", columns, first, path)]
        about = {chapter: subject for subject, chapters in ABOUT.items() for chapter in chapters}
        for subject in ("moons", *ABOUT):
            rows = []
            for name in (name for _, names in list_chapters() for name in names if about.get(name, "moons") == subject):
                mine = [row for key, row in self.rows.items() if key.startswith(f"{name}:") and key not in FIRST]
                rows += [[link_chapter(name)], *mine] if mine else []
            shown.append(self.show(f"About {subject}", columns, rows, path))
        return [nodes.paragraph("", self.count(claims, verdicts)), *shown]

    def count(self, claims, verdicts):
        """How many there are of each verdict, and of sentences that others said, as a sentence."""
        held, falls, fails = (verdicts.count(verdict) for verdict in ("holds", "falls", "does not hold"))
        theirs = [verdict for claim, verdict in zip(claims, verdicts, strict=True) if "whose" in claim]
        return (
            f"{len(claims)} claims: {held} hold, {falls} fall, {fails} do not hold. "
            f"{len(theirs)} are sentences of others; {theirs.count('holds')} of these hold."
        )


def write_claim(claim, verdict):
    """A row of the register, as HTML: the sentence, linked, its value, criterion, when set, whose, and the verdict."""
    told = claim["value"], claim["criterion"], WHEN[claim.get("stated", "")], claim.get("whose", "ours")
    texts = map(html.escape, told)
    link = f'<a href="{claim["chapter"]}.html#{name_claim(claim["id"])}">{html.escape(claim["claim"])}</a>'
    return [link, *texts, verdict]


def name_claim(claim):
    """The id of a claim's row in its chapter."""
    return f"claim-{claim}"


def mark_claims(app, pagename, templatename, context, doctree):
    """Give each row of a chapter's table of claims an id, so that one can link to a claim."""
    notebook = ROOT / f"{pagename}.ipynb"
    start = context.get("body", "").find(f"<caption>{CLAIMS_HEADING}</caption>")
    if start < 0 or not notebook.exists():
        return
    cells = json.loads(notebook.read_text(encoding="utf8"))["cells"]
    stored = [output["data"].get(MIME, []) for cell in cells for output in cell.get("outputs", []) if "data" in output]
    mine = iter([claim["id"] for claims in stored for claim in claims])
    head, table = context["body"][:start], context["body"][start:]
    end = table.index("</table>")
    before, rows = table[:end].split("<tbody>")
    rows = re.sub("<tr>", lambda _: f'<tr id="{name_claim(next(mine))}">', rows)
    context["body"] = f"{head}{before}<tbody>{rows}{table[end:]}"


NAMES = '<div class="names"></div>'  # stands in api.md


def list_names(app, pagename, templatename, context, doctree):
    """Lead from the reference's first page to each name, by the anchor that it had there when all was one page."""
    if NAMES not in context.get("body", ""):
        return
    objects, items = app.env.get_domain("py").objects, ""
    for page in app.env.toctree_includes[pagename]:
        address, modules = app.builder.get_relative_uri(pagename, page), {}
        for name, entry in objects.items():
            kinds = ("module", "function", "class", "exception")
            if entry.docname == page and entry.objtype in kinds and not entry.aliased:
                module, _, short = ("", "", name) if entry.objtype == "module" else name.rpartition(".")
                link = f'<a id="{entry.node_id}" href="{address}#{entry.node_id}"><code>{short}</code></a>'
                modules.setdefault(module or name, []).append(link)
        lines = (f"<dd>{head}: {', '.join(names)}</dd>" for head, *names in modules.values())
        items += f'<dt><a href="{address}">{app.env.titles[page].astext()}</a></dt>{"".join(lines)}'
    context["body"] = context["body"].replace(NAMES, f"<dl>{items}</dl>")


class Frames(SphinxDirective):
    """A picture that a slider changes, of ``_static/frames/<name>.json``; without JavaScript one frame stands."""

    required_arguments = 1
    has_content = True  # the caption
    option_spec: ClassVar = {"start": directives.unchanged_required}

    def run(self):
        name = self.arguments[0]
        path = BOOK / "_static" / "frames" / f"{name}.json"
        self.env.note_dependency(str(path))
        slider = json.loads(path.read_text())
        up = "../" * self.env.docname.count("/")
        frames = [frame | {"file": f"{up}_static/frames/{name}-{k}.png"} for k, frame in enumerate(slider["frames"])]
        start = [frame["value"] for frame in frames].index(self.options["start"])
        first, last = frames[start], len(frames) - 1
        escaped = html.escape(json.dumps(frames))
        control = f"frames-{name}"
        start_of_figure = f"""
<figure class="frames-figure"><div class="frames" data-frames="{escaped}">
<img src="{first["file"]}" alt="{html.escape(first["alt"])}" width="{slider["width"]}"
 height="{slider["height"]}" loading="lazy">
<p class="frames-control" hidden><label for="{control}">{html.escape(slider["label"])}</label>
<input type="range" id="{control}" min="0" max="{last}" value="{start}" aria-valuetext="{first["value"]}">
<output for="{control}">{first["value"]}</output></p>
</div><figcaption>"""
        caption = nodes.container(classes=["frames-caption"])
        self.state.nested_parse(self.content, self.content_offset, caption)
        end = nodes.raw("", "</figcaption></figure>", format="html")
        return [nodes.raw("", start_of_figure, format="html"), caption, end]


def cut_sheets(app, exception):
    """Cut the sheet of every slider, its frames one below another, into ``_static/frames/<name>-<k>.png``.

    The sheet itself is not published.
    """
    if exception is not None or app.builder.format != "html":
        return
    for about in Path(app.outdir, "_static", "frames").glob("*.json"):
        sheet, n = about.with_suffix(".png"), len(json.loads(about.read_text())["frames"])
        with Image.open(sheet) as whole:
            height = whole.height // n
            for k in range(n):
                frame = whole.crop((0, k * height, whole.width, (k + 1) * height))
                frame.save(about.with_name(f"{about.stem}-{k}.png"), optimize=True)
        sheet.unlink()


def list_terms():
    """The words that the glossary explains."""
    block = re.search(r"```\{glossary\}\n(.*?)```", (BOOK / "glossary.md").read_text(encoding="utf8"), flags=re.DOTALL)
    return re.findall(r"^(\S.*)$", block.group(1), flags=re.MULTILINE)


class IndexEntries(SphinxTransform):
    """Enter each word of the glossary into the index, below it each chapter that uses it, at the first such paragraph.

    Runs before Sphinx gathers the entries (priority 850). The glossary enters the words themselves.
    """

    default_priority = 800

    def apply(self, **kwargs):
        if not (ROOT / f"{self.env.docname}.ipynb").exists():
            return
        self.env.note_dependency(str(BOOK / "glossary.md"))
        chapter = self.document.next_node(nodes.title).astext()
        everywhere = self.document.findall(nodes.paragraph)
        paragraphs = [
            (p, p.astext()) for p in everywhere if not isinstance(p.parent, nodes.entry)
        ]  # no cell of a table
        for term in list_terms():
            case = 0 if term[1:2].isupper() else re.IGNORECASE  # "ESS" is not the end of "less"
            said = re.compile(rf"\b{re.escape(term)}s?\b", flags=case)
            place = next((paragraph for paragraph, text in paragraphs if said.search(text)), None)
            if place is not None:
                target = f"index-{nodes.make_id(term)}"
                place["ids"].append(target)
                entry = ("single", f"{term}; {chapter}", target, "", None)
                place.parent.insert(place.parent.index(place), addnodes.index(entries=[entry]))


class Colophon(RawTable):
    """Versions of what the book is made with, from the lock and the notebooks."""

    packages = ("pymc", "pytensor", "nutpie", "numba", "jax", "numpyro", "blackjax", "arviz", "numpy", "scikit-learn",
                "matplotlib", "seaborn", "jupyter-book", "sphinx", "myst-nb", "nbval", "jupytext")  # fmt: skip

    def run(self):
        lock = ROOT / "requirements.txt"
        pinned = dict(re.findall(r"^([\w-]+)==([\w.]+)", lock.read_text(encoding="utf8"), flags=re.MULTILINE))
        rows = [[html.escape(name), html.escape(pinned[name])] for name in self.packages]
        machines = set()
        for _, names in list_chapters():
            for name in names:
                found = nbformat.read(BOOK / f"{name}.ipynb", as_version=4).metadata.get("bnn", {}).get("machine", {})
                machines.add((found.get("processor", "unknown"), found.get("python", "")))
        run = [[html.escape(processor), html.escape(f"Python {python}")] for processor, python in sorted(machines)]
        return [
            self.show("Packages, as pinned in the lock", ["Package", "Version"], rows, lock),
            self.show("Where the stored outputs were computed", ["Processor", "Language"], run, lock),
        ]


def link_out(env, text, name):
    """Roles {site}, {repository} and {slides}: ``text <path>`` as a link below that address, or folder of this site."""
    repository = env.config.html_theme_options["repository_url"].rstrip("/")
    up = "../" * env.docname.count("/")
    base = {"site": env.config.html_baseurl, "repository": f"{repository}/", "slides": f"{up}slides/"}[name]
    words, _, path = text.partition("<")
    address = (base + path.rstrip(">").strip()).rstrip("/")
    return nodes.reference("", words.strip() or address, refuri=address)


def pick(name, existing, what):
    """Return `existing[name]`, or a LookupError that says what exists."""
    if name not in existing:
        raise LookupError(f"no {what} {name!r}; there are: {', '.join(map(repr, existing)) or 'none'}")
    return existing[name]


def find_claim(env, name):
    """The value of the claim ``chapter:id``, its error included, and the address of its row."""
    path, (chapter, _, claim) = BOOK / "claims.json", name.partition(":")
    env.note_dependency(str(path))
    rows = json.loads(path.read_text(encoding="utf8"))
    values = {f"{chapter}:{row['id']}": row["value"] for row in rows if row["chapter"] == chapter}
    base = env.config.claims_base or f"{'../' * env.docname.count('/')}book/"
    return pick(name, values, "claim"), f"{base}{chapter}.html#{name_claim(claim)}"


def cite_claim(env, text):
    """Role {claim}: ``chapter:id`` as the value of that claim, its error included, linked to the chapter's row."""
    value, address = find_claim(env, text)
    return nodes.reference("", value, refuri=address)


def state_cost(env, text):
    """Role {cost}: a chapter's CPU-seconds and memory on one core, warm, as the study `run_cost` measured them."""
    path = BOOK / "data" / "run_cost.json"
    env.note_dependency(str(path))
    row = pick(text, {row["chapter"]: row for row in json.loads(path.read_text())["rows"]}, f"chapter in {path.name}")
    return nodes.Text(f"{row['cpu_seconds']} CPU-s, {row['megabytes']:,} MB")


def open_binder(theme, path):
    """The address that opens a notebook in Binder: the image of the branch `environment`, the book as it is now.

    `theme` are the theme's options, `path` is a file below the repository's root.
    """
    repository, branch = theme["repository_url"].rstrip("/"), theme.get("repository_branch") or "main"
    query = {"repo": repository, "branch": branch, "targetpath": branches.FOLDER,
             "urlpath": f"lab/tree/{branches.FOLDER}/{path}"}  # fmt: skip
    server, owner = theme["launch_buttons"]["binderhub_url"].rstrip("/"), "/".join(repository.split("/")[-2:])
    return f"{server}/v2/gh/{owner}/{branches.ENVIRONMENT}?urlpath={quote('git-pull?' + urlencode(query), safe='')}"


def mend_launchers(app, pagename, templatename, context, doctree):
    """Let the entries of Run open the branches that are made for them: the theme knows only the book's own."""
    theme = app.config.html_theme_options
    groups = [button for button in context.get("header_buttons", []) if button.get("label") == "launch-buttons"]
    for entry in [entry for group in groups for entry in group["buttons"]]:
        if entry["text"] == "Binder":
            entry["url"] = open_binder(theme, f"{pagename}.ipynb")
        elif entry["text"] == "Colab":
            branch = theme.get("repository_branch") or "main"
            entry["url"] = entry["url"].replace(f"/blob/{branch}/", f"/blob/{branches.COLAB}/", 1)


def setup(app):
    """Add the directives and roles."""
    app.add_config_value("claims_base", "", "env")  # where slides, a site of their own, find the chapters
    app.add_role("claim", make_role(cite_claim))
    app.connect("html-page-context", mend_launchers, priority=502)  # the theme adds its buttons at 501
    app.add_role("cost", make_role(state_cost))
    for name in ("site", "repository", "slides"):
        app.add_role(name, make_role(link_out, name))
    app.add_directive("claims-register", ClaimsRegister)
    app.add_directive("frames", Frames)
    app.add_directive("colophon", Colophon)
    app.add_transform(IndexEntries)
    app.connect("html-page-context", mark_claims)
    app.connect("html-page-context", list_names)
    app.connect("build-finished", cut_sheets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
