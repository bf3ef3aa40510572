"""Typical wrong answers to the exercises of chapter cheaper_ways: each must be refused by its check."""

RIGHT = ["one-hot MLP", "one-hot ensemble", "learned angles"]

WRONG = {
    "check_front": [
        lambda: None,
        lambda: [],
        # the best one alone
        lambda: ["hierarchical"],
        # the dearest first
        lambda: RIGHT[::-1],
        # the names of another table
        lambda: ["MLP", *RIGHT[1:]],
        # the deep ensemble, which is dearer than a better one
        lambda: [RIGHT[0], "deep ensemble", *RIGHT[1:]],
        # a name twice
        lambda: [*RIGHT, RIGHT[-1]],
        # the best posterior, which is dearer than a better peer
        lambda: [*RIGHT, "hierarchical"],
        # costs beside the names
        lambda: [(0.3, "one-hot MLP"), (135.8, "hierarchical")],
    ],
}
