"""JavaScript of the live pages (`book/_static/live`) run from Python: in the Node that Playwright's package carries.

So nothing has to be installed for it. A piece of code is the body of an async function of `live`, all functions that
the modules export, and `data`; what it returns comes back. The same piece runs in a page: see `run_in_page`.
"""

import json
import subprocess
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

LIVE = Path(__file__).resolve().parents[1] / "_static" / "live"
MODULES = ("elementary", "random", "network", "nuts", "diagnose", "advi", "run", "sampler")
# JSON knows no NaN and no infinity: they travel as text, which float() and np.array(…, float) read
PIECE = """async (text) => {
  const modules = await Promise.all(%s.map((address) => import(address)));
  const live = Object.assign({}, ...modules), data = JSON.parse(text);
  const pack = (_, value) => ArrayBuffer.isView(value) ? [...value]
    : typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  return JSON.stringify(await (async () => { %s })(), pack);
}"""
READ = 'let text = ""; for await (const part of process.stdin.setEncoding("utf8")) text += part;'


def find_node():
    """The path of Playwright's Node (str)."""
    return compute_driver_executable()[0]


def wrap(code, base):
    """A piece of code as an async function of its data as JSON, whose modules are below `base`, an address."""
    return PIECE % (json.dumps([f"{base}{name}.js" for name in MODULES]), code)


def run_in_node(code, **data):
    """What a piece of code returns for these data (JSON-like).

    Raises
    ------
    RuntimeError
        With what Node says, when the code fails.
    """
    script = f"{READ} process.stdout.write((await ({wrap(code, LIVE.as_uri() + '/')})(text)) ?? 'null');"
    command = [find_node(), "--no-warnings", "--input-type=module", "-e", script]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-2000:])
    return json.loads(done.stdout)


def run_in_page(page, code, base, **data):
    """The same in a tab of Playwright's that shows something from the server at `base`, where the modules are."""
    return json.loads(page.evaluate(wrap(code, base), json.dumps(data)) or "null")
