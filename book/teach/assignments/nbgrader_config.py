"""Settings of a course folder with this book's assignments. `make assignments COURSE=/a/folder` copies them there."""

c = get_config()  # noqa: F821  nbgrader defines it

c.CourseDirectory.course_id = "hbnn"

# what students find in place of a solution
c.ClearSolutions.code_stub = {
    "python": "# YOUR CODE HERE\n"
    'raise NotImplementedError("not done yet: put your code in place of this line, then run the tests below it again")'
}
c.ClearSolutions.text_stub = "YOUR ANSWER HERE"

# a notebook takes under a minute; a student's endless loop should not take an hour
c.ExecutePreprocessor.timeout = 300  # seconds for a cell
