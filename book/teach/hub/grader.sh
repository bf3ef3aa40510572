#!/bin/bash
# The account that grades, once: bash /srv/hbnn/repository/book/teach/hub/grader.sh
set -euo pipefail

# What server.sh switched off for all, in files: `jupyter server extension enable --user` does not find an extension
# that was switched off for all.
mkdir -p ~/.jupyter/labconfig ~/.jupyter/jupyter_server_config.d
cat > ~/.jupyter/labconfig/page_config.json <<'END'
{"disabledExtensions": {
  "@jupyter/nbgrader:create-assignment": false,
  "@jupyter/nbgrader:formgrader": false,
  "@jupyter/nbgrader:course-list": false}}
END
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
