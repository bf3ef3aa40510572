"""Settings of a course folder with this book's assignments. `make assignments COURSE=/a/folder` copies them there."""

import re

from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbgrader.preprocessors import ClearHiddenTests, GetGrades

c = get_config()  # noqa: F821  nbgrader defines it

c.CourseDirectory.course_id = "hbnn"

# what students find in place of a solution
c.ClearSolutions.code_stub = {
    "python": "# YOUR CODE HERE\n"
    'raise NotImplementedError("not done yet: put your code in place of this line, then run the tests below it again")'
}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

c.ExecutePreprocessor.skip_cells_with_tag = ""  # else a tag "skip-execution" on a test gives all its points
c.ExecutePreprocessor.iopub_timeout = 60  # seconds; of nbclient's 4, a busy machine loses a whole notebook

# a notebook takes under a minute; a student's endless loop should not take an hour
c.ExecutePreprocessor.timeout = 300  # seconds for a cell
_stopped = "This cell ran for five minutes and was stopped. Is there a loop without an end?"
c.ExecutePreprocessor.error_on_timeout = {"ename": "CellTimeoutError", "evalue": _stopped, "traceback": [_stopped]}


class KeepMessages(ClearHiddenTests):
    """Feedback without the code of hidden tests: what a failed one says stays, and where a student's code failed."""

    def preprocess(self, nb, resources):
        """Called once for each notebook, before its page is written."""
        told = [(cell, cell.metadata.get("nbgrader", {})) for cell in nb.cells if cell.cell_type == "code"]
        own = {str(cell.execution_count) for cell, what in told if what.get("solution")}
        for cell, _ in told:
            for output in cell.outputs:
                if output.output_type == "error":
                    frames = [re.match(r"Cell In\[(\d+)\]", _strip(text)) for text in output.traceback]
                    kept = [text for text, at in zip(output.traceback, frames, strict=True) if at and at[1] in own]
                    output.traceback = [*kept, f"{output.ename}: {output.evalue}"]
        return super().preprocess(nb, resources)


def _strip(text):
    """A line of a traceback without its colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


c.GenerateFeedback.preprocessors = [GetGrades, KeepMessages, CSSHTMLHeaderPreprocessor]
