"""What nbgrader needs to know on every account of a class, the grader's and the students'.

It lies in the environment of the students: /opt/tljh/user/etc/jupyter/nbgrader_config.py on The Littlest JupyterHub.
"""

c = get_config()  # noqa: F821  nbgrader defines it

c.CourseDirectory.course_id = "hbnn"

# Releases go out through this folder and submissions come back. Everybody may write to it, as nbgrader asks for,
# and move or delete only what is one's own (mode 1777): else a student could put another course in the place of yours.
c.Exchange.root = "/srv/hbnn/exchange"
