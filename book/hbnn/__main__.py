"""From a table with groups to predictions and a report.

python -m hbnn hives.csv --group hive --outcome gain
python -m hbnn hives.csv --group hive --outcome gain --predict asked.csv --report report.html --save hives.nc
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

OURS = "group|outcome|second_group|features|ids|kind|classes|predict|rivals|model|out|report|save|sep|decimal|encoding"


def _speak(text: object) -> str:
    """A message in the command's own language: --kind counts, and not kind='counts'."""
    told = re.sub(
        rf"\b({OURS})=('[^']*'|\[…\]|\([^)]*\)|\[[^\]]*\])", lambda m: f"--{m[1].replace('_', '-')} {m[2]}", str(text)
    )
    return re.sub(r"--kind '(\w+)'", r"--kind \1", told).replace("force=True", "--force")


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict from the command line; what cannot be used is said, and nothing is written then."""
    parser = argparse.ArgumentParser(
        prog="python -m hbnn", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("source", metavar="table", help="a CSV file with a row for each observation")
    add("--group", required=True, action="append", help="the column that says which group a row is of; may be repeated")
    add("--outcome", required=True, help="the column to predict")
    add("--second-group", help="the column of a second grouping, such as the clinic of a patient")
    add("--features", nargs="+", help="columns to predict from; default: all others")
    add("--leave-out", nargs="+", default=[], help="columns not to predict from")
    add("--ids", nargs="+", help="columns to carry along, and no features unless --features names them; default: all")
    add("--kind", help="of the outcome, where it is not plain: binary, real, classes, ordered, counts or share")
    add(
        "--classes",
        nargs="+",
        help="words of the outcome: probabilities are of the second of two; from low to high for --kind ordered",
    )
    add("--predict", help="a CSV file with rows to predict; default: rows without an outcome, or all")
    add("--rivals", nargs="+", metavar="NAME", help="line, 'hierarchical line', quadratic, smooth, trees; default: all")
    add("--model", help="whose predictions are wanted: network, or a rival; default: whoever is advised")
    add("--out", default="predictions.csv", help="default: %(default)s")
    add("--report", help="write a report into this HTML file (needs matplotlib)")
    add("--save", help="keep the fit of the network or the hierarchical line in this netCDF file")
    add("--force", action="store_true", help="write over files that this command did not write")
    add("--minutes", type=float, help="end after so many, with what is finished")
    add("--sep", default=",", help="between columns, default: %(default)s")
    add("--decimal", choices=(".", ","), help="the decimal point")
    add("--encoding", default="utf-8", help="of the files, default: %(default)s")
    add("--seed", type=int, default=1, help="default: %(default)s")
    asked = vars(parser.parse_args(arguments))
    try:
        return _answer(asked)
    except KeyboardInterrupt as stopped:
        print(str(stopped) or "Interrupted: nothing was finished, and nothing is written.", file=sys.stderr)
        return 130


def _answer(asked: dict[str, Any]) -> int:
    """What `hbnn.tables.answer` says, and the exit status."""
    from hbnn._text import join  # not before: Ctrl-C is heard from the start
    from hbnn.tables import _answer, _compare, _read, _write

    def end(status: int = 130) -> None:
        _write.drop_parts()
        os._exit(status)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # else nohup's
            signal.signal(number, lambda number, _: end(128 + number))
    say, left_out = partial(print, flush=True), asked.pop("leave_out")
    try:
        if asked["features"] is None:
            path = Path(asked["source"])
            used = [*asked["group"], *filter(None, (asked["second_group"], asked["outcome"])), *left_out]
            used += asked["ids"] or []
            frame = _read.read_csv(path, asked["sep"], asked["encoding"])
            _read.check_columns(frame, used, path.name)
            asked["features"] = names = [name for name in frame.columns if name not in used]
            named = join(map(repr, names))
            say(f"Features: {named}; --features names fewer, --leave-out all but some.")
        watch = _compare.Watch(lambda text: say(_speak(text)), asked.pop("minutes"), end)
        found = _answer.answer(**{name: value for name, value in asked.items() if value is not None}, progress=watch)
    except (ValueError, OSError) as error:
        print(_speak(error), file=sys.stderr)
        return 1
    return 130 if found.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
