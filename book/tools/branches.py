"""The two branches that the pages' buttons open, made of the commit that is checked out.

    python book/tools/branches.py REMOTE REPOSITORY    bring them to REMOTE where they differ; readers fetch REPOSITORY

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
        "$0" book/tools/reader.py --colab > /tmp/reader.txt
        "$0" -m pip install -q --no-deps --require-hashes -r /tmp/reader.txt
        "$0" book/bookkit/environment.py --install
    """, sys.executable], check=True)
    os.kill(os.getpid(), 9)  # only a new process has the new packages
'''


def git(*arguments, **options):
    """What git prints (str); raises CalledProcessError where it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE, **options)
    return done.stdout.strip()


def add_cell(text, source):
    """A notebook (its text) with one more code cell at the top, and everything else as it was (str)."""
    notebook = json.loads(text)
    cell = {"cell_type": "code", "execution_count": None, "id": "colab", "metadata": {}, "outputs": []}
    cell |= {"source": source}
    notebook["cells"].insert(0, cell)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def make_colab(repository):
    """Write the tree of `colab`: the chapters of HEAD, each with the cell that fetches `repository`. Its name."""
    source = CELL.format(folder=FOLDER, repository=repository, commit=git("rev-parse", "HEAD"))
    names = [name for name in git("ls-tree", "--name-only", "HEAD", "book/").split() if name.endswith(".ipynb")]
    with tempfile.TemporaryDirectory() as folder:
        environ = os.environ | {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        for name in names:
            blob = git("hash-object", "-w", "--stdin", input=add_cell(git("show", f"HEAD:{name}"), source))
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=environ)
        return git("write-tree", env=environ)


def push(remote, branch, tree):
    """Make `branch` at `remote` one commit with this tree, unless it has it. Returns whether it was changed."""
    if git("ls-remote", remote, f"refs/heads/{branch}"):
        git("fetch", "-q", "--depth", "1", remote, branch)
        if git("rev-parse", "FETCH_HEAD^{tree}") == tree:
            return False
    who = ["-c", "user.name=the book's publish workflow", "-c", "user.email=noreply@github.com"]
    commit = git(*who, "commit-tree", tree, "-m", f"Made of {git('rev-parse', 'HEAD')}")
    git("push", "-q", "--force", remote, f"{commit}:refs/heads/{branch}")
    return True


def main(remote, repository):
    for branch, tree in ((ENVIRONMENT, git("rev-parse", "HEAD:.binder")), (COLAB, make_colab(repository))):
        print(f"{branch}: {'new' if push(remote, branch, tree) else 'as it was'}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python book/tools/branches.py REMOTE REPOSITORY (where to push; what a reader fetches from)")
    main(*sys.argv[1:])
