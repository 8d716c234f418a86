"""What children may know of the daemon's environment."""

from musterd.config.children import children_environment


def test_what_is_ours_stays_with_us() -> None:
    ours = ("MUSTERD_HTTP__TOKEN", "PGPASSWORD", "DSN", "MY_DSN", "NOTIFY_SOCKET", "LISTEN_PID",
            "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY")  # fmt: skip
    theirs = {
        "PATH": "/bin",
        "DATABASE_URL": "postgresql://own/db",
        "PAGER": "less",
        "API_TOKEN": "t",
    }
    environ = {**theirs, **dict.fromkeys(ours, "x")}
    assert children_environment(environ, ()) == {"PYTHONUNBUFFERED": "1", **theirs}


def test_a_secret_does_not_pass_under_another_name() -> None:
    environ = {"DATABASE_URL": "postgresql://u:p@h/db", "HINT": "see postgresql://u:p@h/db?x=1"}
    assert children_environment(environ, ("postgresql://u:p@h/db", "")) == {"PYTHONUNBUFFERED": "1"}
