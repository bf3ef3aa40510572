"""A class on one server: JupyterHub starts with the page's configuration, and a student opens an assignment."""

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests
from book_hub import choose_machines, count_students, wait_minutes
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import Exchange
from nbgrader.plugins.zipcollect import FileNameCollectorPlugin
from traitlets.config import PyFileConfigLoader

ROOT = Path(__file__).parents[2]
HUB = ROOT / "book" / "teach" / "hub"
RELEASE = "book/teach/assignments/release/a1-moons/a1-moons.ipynb"
TOKEN = {"Authorization": "token of-the-test-alone"}
# Beside the page's file: processes of this user in place of users of the system, and no proxy, which needs Node.js and
# a package of npm. So the student's server is asked at its own port.
SMALL_HUB = f"""
import os
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    should_start = False
    async def add_route(self, routespec, target, data): pass
    async def delete_route(self, routespec): pass
    async def get_all_routes(self): return {{}}

load_subconfig({str(HUB / "jupyterhub_config.py")!r})
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.authenticator_class, c.JupyterHub.spawner_class = "dummy", "simple"
c.Authenticator.allow_all = True
c.JupyterHub.services = [{{"name": "test", "api_token": "of-the-test-alone"}}]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"],
                            "scopes": ["admin:users", "admin:servers", "access:servers"]}}]
c.SimpleLocalProcessSpawner.home_dir_template = os.path.abspath("home")  # beside this file
c.Spawner.notebook_dir = {str(ROOT)!r}
c.Spawner.cmd = [{sys.executable!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
"""


def ask(method, url, *wanted, seconds=180):
    """The answer to a request, asked again until its status is a wanted one."""
    said, end = None, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            answer = requests.request(method, url, headers=TOKEN, timeout=60, allow_redirects=False)
            if answer.status_code in wanted:
                return answer
            said = f"{answer.status_code} {answer.text[:300]}"
        except requests.ConnectionError as error:
            said = error
        time.sleep(0.5)
    raise AssertionError(f"{method} {url}: {said}; wanted: {wanted}")


def find_port():
    """A port that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.slow  # three processes that import all of JupyterLab
def test_a_hub_with_the_pages_configuration_opens_an_assignment_for_a_student(tmp_path):
    ports = find_port(), find_port()
    (tmp_path / "config.py").write_text(SMALL_HUB + f"c.JupyterHub.hub_port, c.Spawner.port = {ports}\n")
    api, server = (f"http://127.0.0.1:{port}" for port in ports)
    command = [sys.executable, "-m", "jupyterhub", "-f", "config.py"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log) as hub:
        try:
            ask("POST", f"{api}/hub/api/users/ada", 201)
            ask("POST", f"{api}/hub/api/users/ada/server", 201, 202)
            release = ask("GET", f"{server}/user/ada/api/contents/{RELEASE}", 200).json()
            assert release["content"]["cells"][0]["source"].startswith("# ")
            assert ask("GET", f"{server}/user/ada/", 302).headers["Location"].startswith("/user/ada/lab")
            ask("GET", f"{server}/user/ada/lab", 200)
        finally:
            hub.terminate()  # and it ends its servers
    assert "not recognized" not in (tmp_path / "log").read_text()  # a setting that JupyterHub does not know


def test_nbgrader_knows_every_setting(tmp_path):
    known = {"CourseDirectory": CourseDirectory, "Exchange": Exchange}
    script = (HUB / "grader.sh").read_text(encoding="utf8")
    (written,) = re.findall(r"nbgrader_config\.py <<'END'\n(.*?)^END$", script, re.DOTALL | re.MULTILINE)
    (tmp_path / "grader.py").write_text(written)
    for name, folder in (("nbgrader_config.py", HUB), ("grader.py", tmp_path)):
        config = PyFileConfigLoader(name, path=str(folder)).load_config()
        assert config
        for section, settings in config.items():
            assert set(settings) <= set(known[section].class_traits(config=True))


@pytest.mark.parametrize(
    ("platform", "file"),
    [
        ("Moodle", "extracted/Lovelace Ada_4711_assignsubmission_file_/a1-moons.ipynb"),
        ("Moodle", "Lovelace Ada_4711_assignsubmission_file_a1-moons.ipynb"),
        ("Canvas", "x/lovelaceada_4711_98765_a1-moons.ipynb"),
        ("Canvas", "lovelaceada_LATE_4711_98765_a1-moons-2.ipynb"),
    ],
)
def test_files_of_a_platform_find_their_student(platform, file):
    page = (HUB.parent / "hub.md").read_text(encoding="utf8")
    (pattern,) = re.findall(rf'# {platform}\n    r"(.*)"$', page, re.MULTILINE)
    found = FileNameCollectorPlugin(named_regexp=pattern).collect(file)
    assert found["student_id"] == "4711"
    assert found["file_id"] == "a1-moons"


def test_memory_decides_how_many_students_fit_and_cores_how_long_they_wait():
    assert [count_students(gigabytes) for gigabytes in (2, 4, 16, 64)] == [0, 1, 7, 31]
    assert wait_minutes(30, 10, 120) == 6  # three runs of two minutes, one after the other, on every core
    assert wait_minutes(5, 10, 120) == 2  # a run has one core, and no more than one
    assert [choose_machines(students)[0] for students in (7, 15, 40, 120, 500)] == [1, 1, 1, 1, 4]
