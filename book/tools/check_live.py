"""Check the JavaScript of the live pages: types, which its comments declare, names that nobody uses, lines too long.

TypeScript's compiler does it, in the Node that Playwright carries. One version of it is fetched from npm's registry,
told by its hash, and kept in ``~/.cache/bnn``; nothing is installed.
"""

import base64
import hashlib
import io
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

from tools.node import LIVE, find_node

ADDRESS = "https://registry.npmjs.org/typescript/-/typescript-5.9.3.tgz"
SHA512 = "jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw=="
OPTIONS = (
    "--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--noUnusedParameters", "--noImplicitReturns",
    "--noFallthroughCasesInSwitch", "--allowUnreachableCode", "false", "--skipLibCheck", "--target", "es2022",
    "--module", "es2022", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable",
)  # fmt: skip
WIDTH = 120


def fetch_compiler(folder, address=ADDRESS, sha512=SHA512):
    """The path of tsc.js below `folder`, fetched where it is not there yet.

    Raises
    ------
    OSError
        When the registry cannot be reached.
    ValueError
        When what came is not what was asked for.
    """
    folder = Path(folder) / hashlib.sha256(sha512.encode()).hexdigest()[:16]
    compiler = folder / "package" / "lib" / "tsc.js"
    if not compiler.exists():
        with urllib.request.urlopen(address, timeout=60) as answer:
            packed = answer.read()
        found = base64.b64encode(hashlib.sha512(packed).digest()).decode()
        if found != sha512:
            raise ValueError(f"{address} has the SHA-512 {found}; wanted: {sha512}")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            members = [m for m in archive.getmembers() if m.name.startswith("package/lib/") and m.isfile()]
            members.sort(key=lambda member: member.name == "package/lib/tsc.js")  # its presence says that all is there
            archive.extractall(folder, members, filter="data")
    return compiler


def find_complaints(compiler, files):
    """What is wrong with these files: list of lines."""
    command = [find_node(), str(compiler), *OPTIONS, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines() + done.stderr.splitlines()
    wide = [
        f"{file}:{number}: {len(line)} characters; wanted: at most {WIDTH}"
        for file in files
        for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH
    ]
    if done.returncode and not said:
        said = [f"tsc ended with {done.returncode}"]
    return said + wide


def find_cache():
    """Where the compiler is kept."""
    return Path.home() / ".cache" / "bnn" / "typescript"


def main():
    """Print what is wrong; the exit status says whether something is."""
    try:
        compiler = fetch_compiler(find_cache())
    except OSError as error:
        print(f"npm's registry is out of reach ({error}): the live pages' types were not checked", file=sys.stderr)
        return 0
    complaints = find_complaints(compiler, sorted(LIVE.glob("*.js")))
    print("\n".join(complaints) or "All types of the live pages are right.")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
