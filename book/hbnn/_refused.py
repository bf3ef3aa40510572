"""What is wrong with something that is refused, said to a reader and kept as a list for a program."""


class Refused(ValueError):
    """Something from outside that cannot be used: a table, a model, labels.

    Parameters
    ----------
    *complaints : str
        What came and what is wanted, each; kept as the attribute ``complaints``.
    where : str
        What they are about, such as a file's name; "" where they say so themselves.

    Examples
    --------
    >>> from hbnn import Refused
    >>> print(Refused("group 'a' has one row", "label 'y' is missing", where="class.csv"))
    class.csv: 2 things are wrong
    - group 'a' has one row
    - label 'y' is missing
    """

    depth = 0  # of a network that was read in part: its layers

    def __init__(self, *complaints: str, where: str = "") -> None:
        several = f"{len(complaints)} things are wrong\n- " if len(complaints) > 1 else ""
        super().__init__(f"{where}: " * bool(where) + several + "\n- ".join(complaints))
        self.complaints = list(complaints)
