"""A class on one server: the page, its configuration and its links, and when hub-check refuses.

hub-check itself adds users to the system and takes minutes; `make hub-check` runs it, and no test does.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest
import yaml
from book_hub import (
    EXAMPLE_HUB,
    LIMIT_MB,
    MACHINES,
    RELEASES,
    SYSTEM_MB,
    count_students,
    list_targets,
    make_link,
    read_costs,
    wait_minutes,
)
from test_site import NOTEBOOKS, ROOT, address, chromium, parse, site
from tools import hub_check
from tools.browser import open_page
from tools.repo import digest as digest_rows
from traitlets.config import PyFileConfigLoader

__all__ = ["address", "chromium", "site"]  # fixtures of the site's tests
BOOK = ROOT / "book"
HUB = BOOK / "teach" / "hub"
PAGE = (BOOK / "teach" / "hub.md").read_text(encoding="utf8").replace("\\\n    ", "")  # a command on one line again
RENDERED = "book/teach/hub.html"
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


# --- when hub-check refuses


@pytest.fixture
def throwaway(monkeypatch, tmp_path):
    """A system in which hub-check would run; nothing of the real one is looked at."""
    monkeypatch.setattr(hub_check, "SHARED", tmp_path / "srv")
    monkeypatch.setattr(hub_check, "WORK", tmp_path / "opt")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(hub_check.sys, "platform", "linux")
    monkeypatch.setattr(hub_check.shutil, "which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setenv("BNN_THROWAWAY", "1")
    return monkeypatch


def test_root_in_a_system_to_throw_away_is_not_refused(throwaway):
    assert hub_check.why_not() is None


def test_another_user_than_root_is_refused(throwaway):
    throwaway.setattr(os, "geteuid", lambda: 1000)
    assert "runs as root" in hub_check.why_not()


@pytest.mark.parametrize("word", ["", "0", "yes"])
def test_a_system_that_nobody_said_may_be_changed_is_refused(throwaway, word):
    throwaway.setenv("BNN_THROWAWAY", word)
    assert "BNN_THROWAWAY=1 make hub-check" in hub_check.why_not()


@pytest.mark.parametrize(("tool", "package"), hub_check.TOOLS.items())
def test_a_missing_tool_is_named_with_its_package(throwaway, tool, package):
    throwaway.setattr(hub_check.shutil, "which", lambda name: None if name == tool else name)
    assert f"needs {tool}," in hub_check.why_not()
    assert f"package {package}." in hub_check.why_not()


@pytest.mark.parametrize("name", ["SHARED", "WORK"])
def test_a_folder_that_is_not_its_own_is_left_alone(throwaway, name):
    folder = getattr(hub_check, name)
    folder.mkdir()
    (folder / "work").write_text("of a term")
    assert "looks like a class in use" in hub_check.why_not()
    throwaway.setattr(hub_check, "find_members", list)
    throwaway.setattr(hub_check, "find_processes", list)
    assert hub_check.clean() == []
    assert (folder / "work").read_text() == "of a term"


def test_what_an_earlier_check_left_is_no_reason_to_refuse_and_is_taken_away(throwaway):
    hub_check.SHARED.mkdir()
    (hub_check.SHARED / hub_check.MARK).touch()
    throwaway.setattr(hub_check, "find_members", list)
    throwaway.setattr(hub_check, "find_processes", list)
    assert hub_check.why_not() is None
    assert hub_check.clean() == [str(hub_check.SHARED)]
    assert not hub_check.SHARED.exists()


def test_a_refusal_is_one_sentence(monkeypatch):
    monkeypatch.delenv("BNN_THROWAWAY", raising=False)
    with pytest.raises(SystemExit, match=r"^hub-check adds [^\n]*\.$"):
        hub_check.main([])


@pytest.mark.slow  # the same from outside: a process that imports all of it
def test_a_refusal_is_a_failure_with_nothing_but_the_sentence():
    environ = {name: value for name, value in os.environ.items() if name != "BNN_THROWAWAY"}
    done = subprocess.run(
        [sys.executable, hub_check.__file__], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("hub-check adds ")
    assert len(done.stderr.splitlines()) == 1


def test_processes_are_found_by_the_sign_that_they_were_started_with():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={hub_check.SIGN: "1"}) as ours:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            found = [process.pid for process in hub_check.find_processes()]
            other.kill()
        ours.kill()
    assert ours.pid in found
    assert other.pid not in found
    assert os.getpid() not in found


# --- what a student does, without a hub


class Kernel:
    """Answers to one request as a kernel's websocket does, given (message type, content) pairs."""

    def __init__(self, answers, *, foreign=()):
        self._answers, self._foreign = answers, foreign

    def send(self, text):
        mine = json.loads(text)["header"]["msg_id"]
        pairs = [("someone else's", pair) for pair in self._foreign] + [(mine, pair) for pair in self._answers]
        self._left = [
            json.dumps({"header": {"msg_type": kind}, "parent_header": {"msg_id": parent}, "content": content})
            for parent, (kind, content) in pairs
        ]

    def recv(self):
        return self._left.pop(0)


DONE = [("execute_reply", {"status": "ok"}), ("status", {"execution_state": "idle"})]


def test_what_a_cell_prints_is_returned_when_the_kernel_is_idle():
    printed = [("stream", {"name": "stdout", "text": text}) for text in ("4", "2\n")]
    noise = [("stream", {"name": "stderr", "text": "a warning"})]
    assert hub_check.execute(Kernel([*noise, *printed, *DONE]), "print(42)") == "42\n"


def test_a_cell_that_errs_fails_with_its_traceback():
    error = ("error", {"traceback": ["\x1b[31mZeroDivisionError\x1b[0m: division by zero"]})
    with pytest.raises(hub_check.Failed, match=r"^ZeroDivisionError: division by zero$"):
        hub_check.execute(Kernel([error, *DONE]), "1 / 0")


def test_an_answer_to_another_request_is_not_taken_for_ours():
    others = [("error", {"traceback": ["not ours"]}), ("stream", {"name": "stdout", "text": "nor this"})]
    assert hub_check.execute(Kernel(DONE, foreign=others), "pass") == ""


def make_cell(kind, source, **nbgrader):
    """A cell with nbgrader's metadata."""
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(source, metadata={"nbgrader": nbgrader} if nbgrader else {})


def test_solutions_are_the_code_cells_that_a_student_fills_in():
    cells = [
        make_cell("code", "import numpy"),
        make_cell("code", "answer", grade_id="a", solution=True),
        make_cell("code", "test", grade_id="a-test", solution=False),
        make_cell("markdown", "an essay", grade_id="open", solution=True),
    ]
    assert hub_check.find_solutions(nbformat.v4.new_notebook(cells=cells)) == {"a": "answer"}


def test_filling_in_changes_the_named_cells_alone():
    cells = [make_cell("code", "import numpy"), make_cell("code", "stub", grade_id="a"), make_cell("code", "stub")]
    filled = hub_check.fill_in(nbformat.v4.new_notebook(cells=cells), {"a": "answer", "b": "nowhere"})
    assert [cell.source for cell in filled.cells] == ["import numpy", "answer", "stub"]


def test_a_step_that_fails_is_named_in_the_report_and_goes_on_failing(capsys):
    report = hub_check.Report()
    with report.step("fine") as say:
        say.append("as it should")
    with pytest.raises(hub_check.Failed), report.step("broken"):
        raise hub_check.Failed("no")
    shown = [re.sub(r" +\d+\.\d s ", "", line) for line in capsys.readouterr().out.splitlines()]
    assert shown == ["ok fine: as it should", "FAILED broken"]


# --- the configuration that a class copies


def load(name, **names):
    """Settings of a configuration file, as JupyterHub and nbgrader read it."""
    return PyFileConfigLoader(name, path=str(HUB), **names).load_config()


@pytest.mark.slow  # JupyterHub and nbgrader take seconds to import; only a new lock can change what they know
def test_every_setting_is_one_that_jupyterhub_and_nbgrader_know():
    from jupyterhub.spawner import LocalProcessSpawner
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange.default import Exchange

    known = {"Spawner": LocalProcessSpawner, "CourseDirectory": CourseDirectory, "Exchange": Exchange}
    for name in ("jupyterhub_config.py", "nbgrader_config.py", "grader_nbgrader_config.py"):
        for section, settings in load(name).items():
            assert set(settings) <= set(known[section].class_traits(config=True))
            known[section](config=load(name))  # and takes the values


def test_the_hub_opens_jupyterlab_waits_for_a_whole_class_and_shares_posteriors():
    config = load("jupyterhub_config.py")
    assert list(config) == ["Spawner"]
    assert (config.Spawner.default_url, config.Spawner.http_timeout) == ("/lab", 180)
    assert config.Spawner.environment["BNN_CACHE"] == str(hub_check.SHARED / "posteriors")


def test_every_account_has_the_same_course_and_exchange():
    config = load("nbgrader_config.py")
    assert config.CourseDirectory.course_id == hub_check.COURSE
    assert config.Exchange.root == str(hub_check.SHARED / "exchange")


def test_the_course_on_a_hub_has_the_id_of_the_course_folder():
    folder = PyFileConfigLoader("nbgrader_config.py", path=str(BOOK / "teach" / "assignments")).load_config()
    assert folder.CourseDirectory.course_id == load("nbgrader_config.py").CourseDirectory.course_id


def test_the_grader_finds_the_course_from_everywhere(monkeypatch):
    monkeypatch.setenv("HOME", "/home/jupyter-grader")
    assert load("grader_nbgrader_config.py").CourseDirectory.root == "/home/jupyter-grader/course"
    assert "assignments.py --course ~/course" in PAGE


def test_what_students_wrote_runs_on_an_account_without_rights():
    """On the page an admin has every right without a password, so the admin never grades."""
    admins = set(re.findall(r"(?:--admin|users\.admin) (\w+)", PAGE))
    graders = set(re.findall(r"/user/(\w+)/formgrader", PAGE))
    assert (admins, graders) == ({"lecturer"}, {"grader"})
    assert "add-item users.allowed grader\n" in PAGE
    graders_blocks = [block for block in BLOCKS if re.search(r"^nbgrader |--course ", block, flags=re.MULTILINE)]
    assert len(graders_blocks) == 2
    assert not any("sudo" in block for block in graders_blocks)


def test_a_student_cannot_move_the_course_out_of_the_exchange_by_the_page_or_the_configuration():
    said = PAGE + "".join(path.read_text() for path in HUB.iterdir())
    assert set(re.findall(r"\b\d?777\b", said)) == {"1777"}
    assert f"/srv/hbnn/exchange/{hub_check.COURSE}\n" in PAGE  # made before a student can take the name


def test_the_exchange_of_the_check_has_the_mode_of_the_page(tmp_path):
    hub_check.make_exchange(tmp_path / "exchange")
    assert (tmp_path / "exchange").stat().st_mode & 0o7777 == 0o1777


def test_what_is_switched_off_for_all_is_switched_on_for_the_grader():
    """In JupyterLab by a command, on the server by a file."""
    switched_on = json.loads((HUB / "grader_extensions.json").read_text())["ServerApp"]["jpserver_extensions"]
    assert switched_on == dict.fromkeys(sorted(hub_check.GRADERS_SERVER), True)
    off, on = (set(re.findall(rf"labextension {verb} .*", PAGE)) for verb in ("disable", "enable"))
    assert {line.split("sys_prefix ")[1] for line in off} == {" ".join(hub_check.GRADERS_LAB), hub_check.NEWS}
    assert {line.split("user ")[1] for line in on} == {" ".join(hub_check.GRADERS_LAB)}
    assert f"disable --sys-prefix {' '.join(hub_check.GRADERS_SERVER)}" in PAGE


def test_both_hubs_give_a_student_the_same():
    values = yaml.safe_load((HUB / "values.yaml").read_text())["singleuser"]
    assert values["cpu"]["limit"] == 1
    assert values["memory"]["limit"] == values["memory"]["guarantee"] == f"{LIMIT_MB // 1024}G"
    assert f"limits.memory {LIMIT_MB // 1024}G" in PAGE
    assert "limits.cpu 1\n" in PAGE


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("\n")[0][:40] for block in BLOCKS])
def test_a_block_of_commands_is_one_that_a_shell_can_read(block):
    done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_every_file_that_the_commands_name_is_in_the_repository():
    named = set(re.findall(r"(?:/srv/hbnn/repository/|(?<=[ ]))(book/[\w./-]+\.\w+)", "\n".join(BLOCKS)))
    named |= {f"book/teach/{name}" for name in re.findall(r"\{literalinclude\} (\S+)", PAGE)}
    assert len(named) >= 6
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_page_and_the_check_use_the_same_folders():
    folders = set(re.findall(r"/srv/hbnn/(\w+)", PAGE))
    assert folders == {"posteriors", "exchange", "repository", "warm"}


def test_a_page_that_opens_a_scheduler_to_others_says_who_must_be_trusted():
    pages = [page for page in BOOK.glob("*.md") if "dask scheduler --host" in page.read_text(encoding="utf8")]
    assert [page.name for page in pages] == ["beyond_one_machine.md"]
    after = pages[0].read_text(encoding="utf8").split("dask scheduler --host")[1].split("\n\n")[1]
    assert after.startswith(":::{admonition} Whoever reaches this port runs code as you")
    assert "https://distributed.dask.org/en/stable/tls.html" in after


# --- links


def test_a_link_names_the_repository_the_branch_and_the_file_in_the_students_copy():
    link = make_link("https://hub.example.org/", "https://example.org/me/my-fork/", "main", "book/moons.ipynb")
    parts = urlsplit(link)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == "https://hub.example.org/hub/user-redirect/git-pull"
    assert parse_qs(parts.query) == {
        "repo": ["https://example.org/me/my-fork"],
        "branch": ["main"],
        "urlpath": ["lab/tree/my-fork/book/moons.ipynb"],
    }


def test_there_is_a_link_for_every_chapter_and_every_assignment():
    paths = [path for _, targets in list_targets() for _, path in targets]
    assert [path for path in paths if not path.is_file()] == []
    chapters = [path for path in paths if path.parent == BOOK]
    assert chapters == [ROOT / name for name in NOTEBOOKS]
    assert [path.stem for path in paths if path.is_relative_to(RELEASES)] == sorted(
        p.stem for p in SOURCES.glob("*.md")
    )


SOURCES = BOOK / "teach" / "assignments" / "source"


def test_every_link_of_the_page_opens_an_existing_file_of_the_repository(site):
    config = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
    links = parse(site, RENDERED).select("a[data-git-pull]")
    assert len(links) == sum(len(targets) for _, targets in list_targets())
    for link in links:
        assert link["href"] == EXAMPLE_HUB + link["data-git-pull"]
        query = parse_qs(urlsplit(link["href"]).query)
        assert (query["repo"], query["branch"]) == ([config["url"]], [config["branch"]])
        folder, _, path = query["urlpath"][0].removeprefix("lab/tree/").partition("/")
        assert folder == Path(urlsplit(config["url"]).path).name
        assert (ROOT / path).is_file()


def test_the_links_follow_the_address_that_a_lecturer_types(address, chromium):
    with open_page(chromium, address + RENDERED) as (page, log):
        link, field = page.locator("a[data-git-pull]").first, page.get_by_label("The address of your hub")
        field.fill("https://hub.my-university.org/")
        changed = link.get_attribute("href")
        assert changed == "https://hub.my-university.org" + link.get_attribute("data-git-pull")
        for half_typed in ("", "hub.my", "javascript:alert(1)"):
            field.fill(half_typed)
            assert link.get_attribute("href") == changed
        assert log.complaints == []


# --- what a machine carries


@pytest.mark.parametrize(("gigabytes", "students"), [(2, 0), (4, 1), (16, 7), (64, 31)])
def test_memory_decides_how_many_students_fit(gigabytes, students):
    assert count_students(gigabytes) == students


def test_cores_decide_how_long_they_wait():
    assert wait_minutes(30, 10, 120) == 6  # three runs of two minutes, one after the other, on every core
    assert wait_minutes(5, 10, 120) == 2  # a run has one core, and no more than one


def test_a_students_limit_carries_every_chapter_beside_the_server():
    rows = json.loads((BOOK / "data" / "hub_cost.json").read_text())["rows"]
    (server,) = [row["megabytes"] for row in rows if row["what"] == "a student's server without a kernel"]
    (hub,) = [row["megabytes"] for row in rows if row["what"] == "the hub and its proxy"]
    assert read_costs()[2] + server <= LIMIT_MB
    assert 2 * hub <= SYSTEM_MB


def test_the_measured_table_is_as_it_was_written():
    table = json.loads((BOOK / "data" / "hub_cost.json").read_text())
    assert table["measured"] is True
    assert table["digest"] == digest_rows(table["rows"])


def test_the_page_shows_what_the_chapters_were_measured_to_need(site):
    cold, warm, _ = read_costs()
    table = parse(site, RENDERED).find("caption", string=re.compile("What a machine carries")).parent
    shown = {row.th.get_text(): [cell.get_text() for cell in row.select("td")] for row in table.select("tbody tr")}
    assert list(shown) == [f"{cores} cores, {gigabytes} GB" for cores, gigabytes in MACHINES]
    students = (64 - 2) // 2  # by hand: 2 GB for the hub, 2 GB for each student
    seconds = [students * cost / 16 for cost in (cold, warm)]
    assert shown["16 cores, 64 GB"] == [f"{students}", *(f"{s / 60:.1f} min" for s in seconds)]
