"""A fit that is kept: one netCDF file of draws, with what else predictions need as JSON in it; nothing is pickled."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from hbnn._refused import Refused
from hbnn.tables._model import Scales
from hbnn.tables._network import Fit

FORMAT = "hbnn.tables.Fit 1"
TUPLES = ("groups", "second_groups", "features", "classes")
TEXTS = (*TUPLES, "kind", "levels", "fills", "share", "weight", "read_as")


def save_fit(path: str | Path, fit: Fit) -> None:
    """Write a fit into a file, all or nothing: `load_fit` reads it, tomorrow or on another machine.

    The verdict is not kept: it belongs to the run, whose chains are mixed in what is written.

    Parameters
    ----------
    path : path
        By custom ``*.nc``; a fit that is there is replaced.
    fit : Fit

    Raises
    ------
    OSError
        For no such folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> fit = tables.fit_network(rows, seed=1, n_units=0, sampler={"chains": 2, "draws": 200, "tune": 300})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tables.save_fit(Path(folder, "wheat.nc"), fit)
    ...     kept = tables.load_fit(Path(folder, "wheat.nc"))
    >>> bool((tables.predict(kept, rows).draws == tables.predict(fit, rows).draws).all())
    True
    """
    path = Path(path)
    arrays, scales = fit.draws | {"center": fit.scales.center, "width": fit.scales.width}, fit.scales
    if fit.chain_weights is not None:
        arrays["chain_weights"] = fit.chain_weights
    data = xr.Dataset({name: (_name_axes(name, np.ndim(v)), v) for name, v in arrays.items()})
    texts = {name: getattr(fit, name) for name in TEXTS} | {"level": scales.level, "spread": scales.spread}
    data.attrs = {"format": FORMAT, "fit": json.dumps(texts)}
    part = path.with_name(f".{path.name}.part")
    try:
        data.to_netcdf(part, engine="scipy")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load_fit(path: str | Path) -> Fit:
    """A fit as `save_fit` wrote it: to predict rows with, read with ``read_table(…, like=fit)``, or a new group.

    Raises
    ------
    Refused
        For a file of something else.

    Examples
    --------
    `save_fit` shows how a fit is kept. What is none is refused:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hbnn import tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "wheat.nc").write_text("no fit")
    ...     try:
    ...         tables.load_fit(Path(folder, "wheat.nc"))
    ...     except ValueError as error:
    ...         print(str(error)[-27:])
    wanted: what save_fit wrote
    """
    try:
        with xr.open_dataset(path, engine="scipy") as opened:
            data = opened.load()
    except (TypeError, ValueError) as error:
        raise Refused(f"{path} is no netCDF file ({error}); wanted: what save_fit wrote") from None
    if data.attrs.get("format") != FORMAT:
        raise Refused(f"{path} has format {data.attrs.get('format')!r}; wanted: {FORMAT!r}, as save_fit writes it")
    texts: dict[str, Any] = json.loads(data.attrs["fit"])
    texts |= {name: tuple(texts.get(name, ())) for name in TUPLES}
    texts["share"] = tuple(texts["share"]) if texts.get("share") else None
    texts["levels"] = {name: tuple(words) for name, words in texts["levels"].items()}
    arrays = {str(name): values.values for name, values in data.items()}
    scales = Scales(arrays.pop("center"), arrays.pop("width"), texts.pop("level"), texts.pop("spread"))
    weights = arrays.pop("chain_weights", None)
    return Fit(draws=arrays, scales=scales, ordered="start" in arrays, chain_weights=weights, **texts)


def _name_axes(name: str, n_axes: int) -> list[str]:
    """Names of axes that no other array shares, as lengths differ; the first of draws is "draw"."""
    own = [f"{name}_axis_{k}" for k in range(n_axes)]
    return own if name in ("center", "width", "chain_weights") else ["draw", *own[1:]]
