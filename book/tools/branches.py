"""The two branches that the pages' buttons open, made of the commit that is checked out.

    python book/tools/branches.py REMOTE REPOSITORY    bring them to REMOTE; readers fetch REPOSITORY

`environment` is `.binder` alone: Binder builds an image for each commit of it, so a change of text builds none.
`colab` has the chapters with one cell more, at the top, that fetches what Colab lacks; each copy of the cell names the
commit that it was made of. Nothing but git and the standard library.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT, COLAB = "environment", "colab"
FOLDER = "hbnn-book"  # where the book comes to lie in a pod, as .binder/postBuild expects it, and on Colab
CELL = '''\
# On Google Colab this cell fetches the book and the packages that it was run with (some minutes), and then restarts
# the session: "crashed" is what Colab calls that. Run the chapter from its top afterwards. Elsewhere it does nothing.
import os, subprocess, sys

if "google.colab" in sys.modules and "bookkit" not in sys.modules:
    subprocess.run(["bash", "-ec", """
        git init -q /content/{folder}
        cd /content/{folder}
        git fetch -q --depth 1 {repository} {commit}
        git checkout -q FETCH_HEAD
        cd .binder  # pins and hashes of what Colab's own kernel does not run on
        awk -F= 'NR == FNR {{ own[$1]; next }} /^[a-z]/ {{ on = $1 in own }} on' colab.txt requirements.txt >pins.txt
        "$0" -m pip install -q --no-deps --require-hashes -r pins.txt
        "$0" ../book/bookkit/environment.py --install
    """, sys.executable], check=True)
    os.kill(os.getpid(), 9)  # only a new process has the new packages
'''
# the same tree gives the same commit, whenever it is made: to push it again changes nothing
WHO = ("-c", "user.name=the book's publish workflow", "-c", "user.email=noreply@github.com")
WHEN = dict.fromkeys(["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"], "2026-01-01T00:00Z")


def git(*arguments, text=None, **environ):
    """What git prints (str) when it is given a text; raises CalledProcessError where it fails."""
    options = {"cwd": ROOT, "check": True, "text": True, "stdout": subprocess.PIPE}
    return subprocess.run(["git", *arguments], input=text, env=os.environ | environ, **options).stdout.strip()


def make_colab(repository):
    """Write the tree of `colab`: the chapters of HEAD, each with the cell that fetches `repository`. Its name."""
    source = CELL.format(folder=FOLDER, repository=repository, commit=git("rev-parse", "HEAD"))
    cell = {"cell_type": "code", "execution_count": None, "id": "colab", "metadata": {}, "outputs": []}
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        for name in git("ls-tree", "--name-only", "HEAD", "book/").split():
            if name.endswith(".ipynb"):
                notebook = json.loads(git("show", f"HEAD:{name}"))
                notebook["cells"].insert(0, cell | {"source": source})
                blob = git("hash-object", "-w", "--stdin", text=json.dumps(notebook, ensure_ascii=False, indent=1))
                git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", **index)
        return git("write-tree", **index)


def main(remote, repository):
    for branch, tree in ((ENVIRONMENT, git("rev-parse", "HEAD:.binder")), (COLAB, make_colab(repository))):
        commit = git(*WHO, "commit-tree", tree, "-m", "Made by book/tools/branches.py", **WHEN)
        git("push", "-q", "--force", remote, f"{commit}:refs/heads/{branch}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python book/tools/branches.py REMOTE REPOSITORY (where to push; what a reader fetches from)")
    main(*sys.argv[1:])
