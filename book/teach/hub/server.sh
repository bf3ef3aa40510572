#!/bin/bash
# The Littlest JupyterHub for a class with this book. As an admin, in the repository's folder /srv/hbnn/repository:
#     sudo -E bash book/teach/hub/server.sh hub.example.org you@example.org
set -euo pipefail
domain=${1:?"the first argument is the server's name, such as hub.example.org"}
mail=${2:?"the second argument is your address, for the certificate of Let's Encrypt"}

# Students read the posteriors and cannot write to them. Everybody may write to the exchange, as nbgrader asks for;
# the first digit of its mode forbids to move or delete what is another's.
mkdir -p /srv/hbnn/posteriors /srv/hbnn/exchange
chmod 1777 /srv/hbnn/exchange

# The lock, and hbnn, bookkit and teach, with the settings that every number of the book was computed with.
pip install --require-hashes -r requirements.txt
# But the students' JupyterHub is the hub's, which may be a major version behind the lock's.
hub=$(/opt/tljh/hub/bin/python -c "import jupyterhub; print(jupyterhub.__version__)")
pip install --no-deps "jupyterhub==$hub"
python book/bookkit/environment.py --install

# The hub's settings, and nbgrader's for every account.
cp book/teach/hub/jupyterhub_config.py /opt/tljh/config/jupyterhub_config.d/hbnn.py
mkdir -p /opt/tljh/user/etc/jupyter
cp book/teach/hub/nbgrader_config.py /opt/tljh/user/etc/jupyter/

# What each may use, the account that grades, and HTTPS.
tljh-config set limits.memory 2G
tljh-config set limits.cpu 1
tljh-config add-item users.allowed grader
tljh-config set https.enabled true
tljh-config set https.letsencrypt.email "$mail"
tljh-config add-item https.letsencrypt.domains "$domain"

# Students need nbgrader's Assignment List, and not what makes and grades assignments, nor JupyterLab's news. For
# JupyterLab a file: of several extensions `jupyter labextension disable` locks the first, for the grader, too.
mkdir -p /opt/tljh/user/etc/jupyter/labconfig
cat > /opt/tljh/user/etc/jupyter/labconfig/page_config.json <<'END'
{"disabledExtensions": {
  "@jupyter/nbgrader:create-assignment": true,
  "@jupyter/nbgrader:formgrader": true,
  "@jupyter/nbgrader:course-list": true,
  "@jupyterlab/apputils-extension:announcements": true}}
END
jupyter server extension disable --sys-prefix \
    nbgrader.server_extensions.formgrader nbgrader.server_extensions.course_list

tljh-config reload
tljh-config reload proxy
