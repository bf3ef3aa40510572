"""From a table with groups to predictions and a report.

python -m hbnn hives.csv --group hive --outcome gain
python -m hbnn hives.csv --group hive --outcome gain --predict asked.csv --report report.html --save hives.nc
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hbnn import tables
from hbnn._text import join
from hbnn.tables._read import check_columns, read_csv
from hbnn.tables._rivals import NAMES
from hbnn.tables._table import KINDS


def _read_cycle(text: str) -> tuple[str, float]:
    name, length = text.rsplit("=", 1)
    return name, float(length)


def main(arguments: Sequence[str] | None = None) -> int:
    """Predict from the command line; what cannot be used is said, and nothing is written then."""
    parser = argparse.ArgumentParser(
        prog="python -m hbnn", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", help="a CSV file with a row for each observation")
    parser.add_argument("--group", required=True, help="the column that says which group a row is of")
    parser.add_argument("--outcome", required=True, help="the column to predict")
    parser.add_argument("--second-group", help="the column of a second grouping, such as the clinic of a patient")
    parser.add_argument("--weight", help="the column that says of how many measurements an outcome is the mean")
    parser.add_argument("--features", nargs="+", help="columns to predict from; default: all others")
    cycles = "features that come round, and after how much: hour=24 date=365.25"
    parser.add_argument("--cycles", nargs="+", default=[], metavar="FEATURE=LENGTH", type=_read_cycle, help=cycles)
    parser.add_argument("--ids", nargs="+", default=[], help="columns to carry along to the predictions")
    parser.add_argument("--kind", choices=KINDS, help="of the outcome, where it is not plain")
    parser.add_argument("--classes", nargs="+", help="words of the outcome, from low to high for --kind ordered")
    parser.add_argument("--predict", help="a CSV file with rows to predict; default: the table itself")
    rivals = tuple(tables.RIVALS)
    parser.add_argument("--rivals", nargs="+", default=rivals, choices=rivals, metavar="NAME", help="%(choices)s")
    parser.add_argument("--out", default="predictions.csv", help="default: %(default)s")
    parser.add_argument("--report", help="write a report into this HTML file (needs matplotlib)")
    parser.add_argument("--save", help="keep the fit of the network or the hierarchical line in this netCDF file")
    parser.add_argument("--sep", default=",", help="between columns, default: %(default)s")
    parser.add_argument("--decimal", choices=(".", ","), help="the decimal point")
    parser.add_argument("--encoding", default="utf-8", help="of the files, default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    asked = vars(parser.parse_args(arguments))
    save, asked["cycles"] = asked.pop("save"), dict(asked["cycles"])
    try:
        if asked["features"] is None:
            path = Path(asked["table"])
            used = [asked[name] for name in ("group", "second_group", "weight", "outcome") if asked[name]]
            used += asked["ids"]
            frame = read_csv(path, asked["sep"], asked["encoding"])
            check_columns(frame, used, path.name)
            asked["features"] = names = [name for name in frame.columns if name not in used]
            print(f"Features: {join(map(repr, names))}; --features names fewer.")
        found = tables.answer(asked.pop("table"), progress=partial(print, flush=True), **asked)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if save and found.fit is not None:
        tables.save_fit(save, found.fit)
        print(f"{save}: the fit, for tables.load_fit.")
    elif save:
        print(f"{save} is not written: {NAMES[found.model]} is fitted again in seconds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
