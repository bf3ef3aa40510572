"""Is there a real table where a hierarchical network is needed? Ten candidates with five to twelve features.

Smooths by hand reach one or two features. So these tables have many, and groups: speakers, patients, wearers of a
watch, households, states, schools. Tables, columns, which rows (every second household, fourth person, fourth school,
sixth recording) and the outcome were written down before anything was fitted, and so was the rule: a table is counted
for the network where it is what `answer` advises, and its lpd on the rows left out is ahead of *each* of the five
rivals by more than two standard errors over groups. Tools and split are those of study `ten_tables`. The
rows of `answer` were computed anew when it had a smooth among its rivals.

Mended after scores were seen, in favour of a rival: with ten features the mixed model with smooths often has no finite
fit, so of four designs (a level of each group, with slopes, with a smooth, with both) the one with the least AIC is
taken that has. And a column of `benefits` that is the same in every row was dropped.

Left out: brain measures of people at 23 sites (their licence forbids commercial use, this book's does not), houses of
Boston (one of their columns is race), smartphones by person (hundreds of features). Ages of stars and spectra by
instrument, which were on the list of ideas, were not looked for.
"""

import hashlib

import numpy as np
import pandas as pd
from bookkit.report import DATA

from studies import ten_tables
from studies.real_groups import Source

MEASURED = False
FOLDER = DATA / "wide_tables"
LOG_AREAS = {f"x{j}": "log area ratio of the vocal tract, standardised by its makers" for j in range(10)}
AXES = {f"{a}{axis}": f"{what} about {axis}, {unit}" if a == "w" else f"{what} along {axis}, {unit}"
        for a, what, unit in (("a", "acceleration", "g"), ("w", "turning", "rad/s")) for axis in "xyz"}  # fmt: skip
SOURCES = {
    "vowels": Source(
        {"speaker": "1 to 15", **LOG_AREAS, "front": "yes where the vowel is that of heed, hid, head or had"},
        "Deterding (1989), University of Cambridge; UCI repository: vowel-context, CC BY 4.0", "deterding1989",
        "34fa14e52c4e21f2c522977c91f67735e1e30ef88d2490015de8f472bc1499c4", "speaker", tuple(LOG_AREAS), "front",
    ),
    "voices": Source(
        {"person": "1 to 42", "days": "since the trial began", "jitter": "percent", "jitter_ms": "milliseconds",
         "shimmer": "share", "apq11": "share", "nhr": "noise to harmonics", "hnr": "harmonics to noise, dB",
         "rpde": "share", "dfa": "exponent", "ppe": "share", "updrs": "motor score of Parkinson's disease, points"},
        "Tsanas et al. (2010), every sixth recording; UCI repository: Parkinsons Telemonitoring, CC BY 4.0",
        "tsanas2010", "cbf9fd5c8edd67685a0b38678e5bc98b77be8b980a89a3ef3fb90eaec8c6e917", "person",
        ("days", "jitter", "jitter_ms", "shimmer", "apq11", "nhr", "hnr", "rpde", "dfa", "ppe"), "updrs",
    ),
    "watches": Source(
        {"person": "number of the wearer", **{f"{kind}_{axis}": f"{kind} of {what}" for kind in ("mean", "sd")
                                              for axis, what in AXES.items()},
         "rotates": "yes where the exercise turns the shoulder outward or inward; a row is a seventh of a recording"},
        "Burns and Whyne (2018), seglearn, of a smart watch at physiotherapy; BSD licence", "burns2018",
        "fc6b0894eef50ac88c02237f36252fc2e4377b881f44597b8f3d497b675fcd0f", "person",
        tuple(f"{kind}_{axis}" for kind in ("mean", "sd") for axis in AXES), "rotates",
    ),
    "yoghurts": Source(
        {"household": "every second of 100", **{f"feat_{brand}": "1 where it was advertised" for brand in
                                               ("yoplait", "dannon", "hiland", "weight")},
         **{f"price_{brand}": "cents an ounce" for brand in ("yoplait", "dannon", "hiland", "weight")},
         "yoplait": "yes where it was bought"},
        "Jain, Vilcassim and Chintagunta (1994); R: Ecdat::Yogurt", "jain1994",
        "d6326324f89992329681e58fb140770f218a0e181e2957ab257ed497070f7a8e", "household",
        ("feat_yoplait", "feat_dannon", "feat_hiland", "feat_weight", "price_yoplait", "price_dannon",
         "price_hiland", "price_weight"), "yoplait",
    ),
    "benefits": Source(
        {"state": "number of the state of the USA", "stateur": "unemployment there, percent", "age": "years",
         "tenure": "years in the lost job", "joblost": "why", "nwhite": "yes or no", "sex": "male or female",
         "married": "yes or no", "yrdispl": "1982 to 1991, as 1 to 10",
         "rr": "share of the wage that benefits replace", "ui": "yes where benefits were claimed"},
        "McCall (1995), every fourth person; R: Ecdat::Benefits", "mccall1995",
        "384db5e7a443de1b87065cc7618583f99eff14106720f7860b591d5b8e510a97", "state",
        ("stateur", "age", "tenure", "joblost", "nwhite", "sex", "married", "yrdispl", "rr"), "ui",
    ),
    "production": Source(
        {"state": "of the USA, 48", "year": "1970 to 1986", "log_hwy": "log10 of highways, million dollars",
         "log_water": "of water works", "log_util": "of other utilities", "log_pc": "of private capital",
         "log_emp": "of thousands employed", "unemp": "percent", "log_gsp": "of the gross product"},
        "Munnell (1990), in Baltagi (2001); R: plm::Produc", "baltagi2001",
        "70bac4f7d906811db5e7f9354feff6c4b316e13883bfb12ed876c3cb701dba93", "state",
        ("year", "log_hwy", "log_water", "log_util", "log_pc", "log_emp", "unemp"), "log_gsp",
    ),
    "fatalities": Source(
        {"state": "number of the state of the USA, 48", "year": "1982 to 1988", "beertax": "dollars a case",
         "mlda": "age at which one may drink, years", "jaild": "yes where a sentence is jail",
         "comserd": "yes where it is service", "vmiles": "thousand miles a driver", "unrate": "percent",
         "perinc": "income per person, dollars", "mrall": "deaths in traffic, of 10,000 people"},
        "Ruhm (1996), in Stock and Watson; R: Ecdat::Fatality", "ruhm1996",
        "70335b995f2f610304cafd54c4a6bda050f2ddfe95acd05f8ec69f7f8dfe6028", "state",
        ("year", "beertax", "mlda", "jaild", "comserd", "vmiles", "unrate", "perinc"), "mrall",
    ),
    "wages": Source(
        {"person": "every fourth of 595", "exp": "years of work", "wks": "weeks worked in the year",
         "bluecol": "yes or no", "ind": "1 in manufacturing", "south": "yes or no", "smsa": "yes in a city",
         "married": "yes or no", "union": "yes or no", "lwage": "log of the wage"},
        "Cornwell and Rupert (1988), in Baltagi (2001); R: plm::Wages", "baltagi2001",
        "f5362ce4d818f6aba8c1d80c3b6b5ad62dfd0b255442680275b8bc34f17925ca", "person",
        ("exp", "wks", "bluecol", "ind", "south", "smsa", "married", "union"), "lwage",
    ),
    "pupils": Source(
        {"school": "every fourth of 79", "maths": "score", "class": "small, regular, or with an aide",
         "experience": "of the teacher, years", "sex": "girl or boy", "free_lunch": "yes or no", "reading": "score"},
        "Project STAR, Word et al. (1990); R: Ecdat::Star", "word1990",
        "6f3c6068706f54f42024f0c5f1506cf09998d4b39bb89273db6d3ce2a828b187", "school",
        ("maths", "class", "experience", "sex", "free_lunch"), "reading",
    ),
    "fries": Source(
        {"subject": "who tasted", "time": "weeks", "treatment": "which oil"}
        | dict.fromkeys(("potato", "buttery", "grassy", "rancid", "painty"), "0 to 15"),
        "Iowa State University, in Wickham (2007); R: reshape2::french_fries", "wickham2007",
        "c2e7410fb4ea0aebfb68f7e78fa57d8066449d15977debf7decb7751cb7f5364", "subject",
        ("time", "treatment", "potato", "buttery", "grassy", "rancid"), "painty",
    ),
}  # fmt: skip
DESIGNS = ((), ("slopes",), ("smooth",), ("slopes", "smooth"))


def ask_smooths(train, test, columns, binary):
    """As `ten_tables.ask_smooths`, of the design with the least AIC that has finite numbers."""
    fits = (ten_tables.fit_smooths(train, test, columns, binary, design) for design in DESIGNS)
    fits = [fit for fit in fits if all(np.isfinite(part).all() for part in fit[:2] if part is not None)]
    mean, noise, _ = min(fits, key=lambda fit: fit[2])
    return (mean.clip(0, 1) if binary else mean), noise


TOOLS = ten_tables.TOOLS | {"smooths": ask_smooths}
CASES = [{"table": table, "tool": tool} for table in SOURCES for tool in TOOLS]
UNCOMPARED = ten_tables.UNCOMPARED


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return ten_tables.SECONDS.get(case["tool"], 5)


def load(name):
    """A table with group "g", features, and outcome "y"."""
    source, path = SOURCES[name], FOLDER / f"{name}.csv"
    if hashlib.sha256(path.read_bytes()).hexdigest() != source.sha256:
        raise ValueError(f"{path} was changed since it was published; wanted: the file of this book")
    frame = pd.read_csv(path)[[source.group, *source.features, source.outcome]]
    frame = frame.rename(columns={source.group: "g", source.outcome: "y"})
    return frame.assign(g=frame["g"].astype(str))


def compute(table, tool):
    """What `ten_tables.ask` finds of a tool on a table of this study."""
    return ten_tables.ask(tool, load(table), TOOLS[tool])
