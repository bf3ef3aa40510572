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

# Students need nbgrader's Assignment List, and not what makes and grades assignments, nor JupyterLab's news.
jupyter labextension disable --level=sys_prefix \
    @jupyter/nbgrader:create-assignment @jupyter/nbgrader:formgrader @jupyter/nbgrader:course-list
jupyter labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements
jupyter server extension disable --sys-prefix \
    nbgrader.server_extensions.formgrader nbgrader.server_extensions.course_list

tljh-config reload
tljh-config reload proxy
