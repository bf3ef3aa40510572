"""What nbgrader needs to know on every account of a class, the lecturer's and the students'.

It lies in the environment of the students: /opt/tljh/user/etc/jupyter/nbgrader_config.py on The Littlest JupyterHub.
"""

c = get_config()  # noqa: F821  nbgrader defines it

c.CourseDirectory.course_id = "hbnn"

# Releases go out through this folder and submissions come back. Everybody may write to it (mode 777): nbgrader asks for
# that, and keeps each student's submission unreadable for the others.
c.Exchange.root = "/srv/hbnn/exchange"
