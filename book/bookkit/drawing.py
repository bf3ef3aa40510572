"""A pad to draw on in a live notebook, for a classifier to look at.

Nothing is shown where nobody watches: on the site, and when tests run a chapter.
"""

import html

import numpy as np
from hbnn import sampling

from bookkit.digits import draw_strokes

SIZE = 280  # pixels a side
PEN = 22  # pixels


class Pad:
    """A square on which the mouse, a pen or a finger draws. Leave `pad.show()` as the last line of a cell.

    Parameters
    ----------
    describe : function of an image (1, pixel) to text, called after each stroke; the text appears beside the pad
    shape : (rows, columns) of the image

    Examples
    --------
    Strokes by hand; in a live notebook `show` lets the mouse make them.

    >>> from bookkit.drawing import Pad
    >>> pad = Pad(lambda image: f"{image.shape[1]} pixels")
    >>> pad.press(140, 20)
    >>> pad.move(140, 260)
    >>> pad.lift()
    >>> (pad.image.reshape(8, 8) > 0.1).sum(axis=0)  # rows with ink in each column
    array([0, 0, 0, 8, 8, 0, 0, 0])
    >>> pad.clear()
    """

    def __init__(self, describe, *, shape=(8, 8)):
        if not callable(describe):
            raise ValueError(f"describe={describe!r}; wanted: a function of an image (1, pixel) to text")
        self._describe, self._shape = describe, shape
        self._strokes, self._down = [], False
        self._canvas = self._words = None

    @property
    def image(self):
        """What is drawn, (1, pixel), as big in its image as the handwritten digits are in theirs."""
        if not self._strokes:
            raise ValueError("nothing is drawn yet; wanted: at least one stroke on the pad")
        return draw_strokes([np.array(stroke) for stroke in self._strokes], shape=self._shape)

    def show(self):
        """The pad as a widget; where nobody watches, None."""
        if not sampling.is_watched():
            return None
        import ipywidgets
        from ipycanvas import Canvas, hold_canvas

        self._hold = hold_canvas
        self._canvas = Canvas(width=SIZE, height=SIZE, layout={"border": "1px solid gray"})
        self._canvas.line_width, self._canvas.line_cap, self._canvas.line_join = PEN, "round", "round"
        self._words = ipywidgets.HTML()
        clear = ipywidgets.Button(description="Clear", tooltip="Clear the pad")
        clear.on_click(lambda _: self.clear())
        for event, act in {"down": self.press, "move": self.move, "up": self.lift, "out": self.lift}.items():
            getattr(self._canvas, f"on_mouse_{event}")(act)
        self._canvas.on_touch_start(lambda touches: self.press(*touches[0]))
        self._canvas.on_touch_move(lambda touches: self.move(*touches[0]))
        self._canvas.on_touch_end(lambda _: self.lift())
        self.clear()
        return ipywidgets.HBox([ipywidgets.VBox([self._canvas, clear]), self._words])

    def clear(self):
        """Take away all strokes."""
        self._strokes, self._down = [], False
        if self._canvas is not None:
            with self._hold():
                self._canvas.fill_style = "white"
                self._canvas.fill_rect(0, 0, SIZE, SIZE)
                self._canvas.stroke_style = "black"
        self._say("Draw a digit, large, with the mouse or a finger.")

    def press(self, x, y):
        """The pen comes down at (x, y), pixels from the upper left corner."""
        self._strokes.append([(x, y)])
        self._down = True
        self._draw_line((x, y), (x, y))

    def move(self, x, y):
        """The pen moves to (x, y)."""
        if self._down:
            self._draw_line(self._strokes[-1][-1], (x, y))
            self._strokes[-1].append((x, y))

    def lift(self, *_):
        """The pen comes up, and the image is looked at."""
        if self._down:
            self._down = False
            self._say(self._describe(self.image))

    def _draw_line(self, start, end):
        if self._canvas is not None:
            self._canvas.stroke_lines(np.add([start, end], [[0, 0], [0.1, 0]]))

    def _say(self, text):
        if self._words is not None:
            self._words.value = f"<pre>{html.escape(text)}</pre>"
