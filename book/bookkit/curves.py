"""Curves measured on many individuals, few points each: four data sets of the literature on growth and on medicines.

The figures are facts, taken from the articles by way of R's packages datasets and nlme, and stored in this book as
small CSV files in their own units, ordered by individual and by where on the curve they were measured.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from hbnn._text import guess, join

FOLDER = Path(__file__).resolve().parents[1] / "data" / "curves"


@dataclass(frozen=True)
class Source:
    """Where a file comes from, and what its columns are.

    Attributes
    ----------
    group, x, y : str, the columns that say whose curve it is, where on it, and what was measured there
    more : str, a column that says something about the individual
    units : dict of column to what it holds, with its unit
    origin : str, the article
    cite : str, its key in references.bib
    sha256 : str, of the file, in hexadecimal

    Examples
    --------
    >>> from bookkit.curves import SOURCES
    >>> SOURCES["theophylline"].units["mg_per_l"]
    "theophylline in the blood's serum, mg/L"
    >>> SOURCES["theophylline"].cite
    'boeckmann1994'
    """

    group: str
    x: str
    y: str
    more: str
    units: dict
    origin: str
    cite: str
    sha256: str


SOURCES = {
    "theophylline": Source(
        "patient", "hours", "mg_per_l", "dose_mg_per_kg",
        {"patient": "number of the patient, 1 to 12", "hours": "time since the dose was swallowed, hours",
         "mg_per_l": "theophylline in the blood's serum, mg/L", "dose_mg_per_kg": "dose, mg per kg of body weight"},
        "Upton (1982), in Boeckmann, Sheiner and Beal (1994), NONMEM Users Guide, part V; R: datasets::Theoph",
        "boeckmann1994",
        "46150e90a43a2efa100a77e429ac7e961dfd86102caa09e08f10fb1496cefec8",
    ),
    "chicks": Source(
        "chick", "days", "grams", "diet",
        {"chick": "number of the chick, 1 to 50", "days": "age, days", "grams": "body weight, g",
         "diet": "number of the diet, 1 to 4"},
        "Crowder and Hand (1990), Analysis of Repeated Measures, example 5.3; R: datasets::ChickWeight",
        "crowder1990",
        "27d574ead7f130f56b33eadf2216477b762b9c1329a8b749274d38806fb6505e",
    ),
    "soybean": Source(
        "plot", "days", "grams", "variety",
        {"plot": "name of the plot, with its year and variety", "days": "time since planting, days",
         "grams": "mean weight of the leaves of a plant, g", "variety": "F, Forrest, or P, Plant Introduction 416937",
         "year": "year"},
        "Davidian and Giltinan (1995), Nonlinear Models for Repeated Measurement Data, section 1.1.3; R: nlme::Soybean",
        "davidian1995",
        "26ac08fcf909c0d92d583083680953fbd203e8023174834684aff25118c264ff",
    ),
    "dialysers": Source(
        "dialyser", "dmhg", "ml_per_h", "blood_flow_ml_per_min",
        {"dialyser": "number of the dialyser, 1 to 20", "dmhg": "pressure across the membrane, dmHg",
         "ml_per_h": "ultrafiltration rate, mL/h", "blood_flow_ml_per_min": "flow of the blood, mL/min (R says dL/min)"},  # noqa: E501
        "Vonesh and Carter (1992), Biometrics 48; R: nlme::Dialyzer",
        "vonesh1992",
        "a78342a5fc9f9726a26c0d3ec454531e30e18d1163a57775cac8c606c461c9a9",
    ),
}  # fmt: skip


def load_curves(name):
    """One of the data sets, in the units of its source.

    Parameters
    ----------
    name : "theophylline", "chicks", "soybean" or "dialysers"

    Returns
    -------
    DataFrame, a row for each measurement, ordered by individual and along the curve; what its columns hold, and in
    which unit, is in ``SOURCES[name].units``

    Raises
    ------
    ValueError
        For another name, and for a file that is not the one that was published with this book.

    Examples
    --------
    >>> from bookkit.curves import load_curves
    >>> curves = load_curves("theophylline")
    >>> curves.shape, curves["patient"].nunique()
    ((132, 4), 12)
    >>> curves.columns.tolist()
    ['patient', 'hours', 'mg_per_l', 'dose_mg_per_kg']
    """
    if name not in SOURCES:
        raise ValueError(f"no curves called {name!r}; wanted: one of {join(map(repr, SOURCES))}{guess(name, SOURCES)}")
    path = FOLDER / f"{name}.csv"
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SOURCES[name].sha256:
        raise ValueError(f"{path} was changed since it was published; wanted: the file of this book (git checkout)")
    return pd.read_csv(path)
