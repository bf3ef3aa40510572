"""JupyterHub for a class with this book: all that differs from a hub's own defaults.

On The Littlest JupyterHub this file is /opt/tljh/config/jupyterhub_config.d/hbnn.py. A hub of your own reads it with
`jupyterhub -f jupyterhub_config.py`. Who may log in, and what each may use, is not said here: tljh-config sets that.
"""

c = get_config()  # noqa: F821  JupyterHub defines it

# A whole class logs in within the same minute, and each server then takes longer to answer than the default of 30 s.
c.Spawner.http_timeout = 180
c.Spawner.start_timeout = 180

c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    # Posteriors that several chapters need, sampled once for all. Students may read this folder and not write to it.
    "BNN_CACHE": "/srv/hbnn/posteriors",
}
