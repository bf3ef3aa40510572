#!/bin/bash
# The account that grades, once: bash /srv/hbnn/repository/book/teach/hub/grader.sh
set -euo pipefail

# What server.sh switched off for all. `jupyter server extension enable --user` does not find an extension that was
# switched off for all, so the server's part is a file.
jupyter labextension enable --level=user \
    @jupyter/nbgrader:create-assignment @jupyter/nbgrader:formgrader @jupyter/nbgrader:course-list
mkdir -p ~/.jupyter/jupyter_server_config.d
cat > ~/.jupyter/jupyter_server_config.d/nbgrader.json <<'END'
{"ServerApp": {"jpserver_extensions": {
  "nbgrader.server_extensions.course_list": true,
  "nbgrader.server_extensions.formgrader": true}}}
END

# The course, in the grader's home.
cat > ~/.jupyter/nbgrader_config.py <<'END'
from pathlib import Path

c.CourseDirectory.root = str(Path.home() / "course")
END
python /srv/hbnn/repository/book/tools/assignments.py --course ~/course
