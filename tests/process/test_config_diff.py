"""What a reload would do is shown before it is done."""

from pathlib import Path

from tests.support.command import eventually
from tests.support.http_client import ask
from tests.support.site import WORKERS, Site


def test_a_difference_is_shown_before_it_is_made(site: Site, tmp_path: Path) -> None:
    site.speak("old")
    site.write(WORKERS + '[catalog]\npaths = ["kinds"]\n[http]\ntoken = "a-long-secret"\n')
    wanted = tmp_path / "wanted.toml"
    wanted.write_text(site.file.read_text())
    same = site.call("config", "diff", str(wanted))
    assert (same.code, same.out) == (0, f"{wanted} changes nothing\n")
    assert site.call("config", "diff", str(wanted), "--json").json["same"] is True
    wanted.write_text(
        '[workers]\nmax_count = 7\n[catalog]\npaths = ["more.toml"]\n[metrics]\nkinds_max = 7\n'
        '[http]\ntoken = "another-secret"\n[tenants.acme]\n'
        '[schedules.pulse]\nkind = "more"\nevery_seconds = 9\n'
    )
    (tmp_path / "more.toml").write_text("[kinds.more]\nduration_ms = 1\n")
    found = site.call("config", "diff", str(wanted), "--json").json
    assert found["same"] is False
    assert {one["key"]: (one["from"], one["to"], one["applies"]) for one in found["changed"]} == {
        "workers.max_count": (6, 7, "at once"),
        "http.token": ("***", "***", "at once"),
        "metrics.kinds_max": (200, 7, "restart"),
        "catalog.paths": ([f"{tmp_path}/kinds"], [f"{tmp_path}/more.toml"], "next job"),
    }
    assert found["restart"] == ["metrics.kinds_max"]
    assert found["tenants"]["added"] == ["acme"]
    assert (found["kinds"]["added"], found["kinds"]["removed"]) == (["more"], ["say", "shout"])
    assert found["schedules"]["added"] == ["pulse"]
    shown = site.call("config", "diff", str(wanted))
    assert "secret" not in shown.out
    assert "1 of them needs a restart" in shown.out
    assert "tenant acme added: it is served" in shown.out


def test_a_difference_that_would_be_refused_is_exit_78(small: Site, tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.toml"
    (tmp_path / "gone.toml").write_text('[kinds.x]\npython = "no_such_module:f"\n')
    for text, said in (
        ("[workers]\nmax_cuont = 7\n", f"{wanted}:2: workers.max_cuont: unknown key"),
        ('[catalog]\npaths = ["gone.toml"]\n', "cannot import no_such_module"),
        ('[http]\ntoken_file = "no-such-file"\n', "http.token_file"),
    ):
        wanted.write_text(text)
        found = small.call("config", "diff", str(wanted))
        assert (found.code, found.out, said in found.err) == (78, "", True), found


def test_files_that_nobody_has_read_yet_are_noticed(small: Site, tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.toml"
    wanted.write_text(WORKERS)
    with small.daemon() as daemon:
        eventually(lambda: bool(ask(daemon.address, "/nodes").json["nodes"]))
        there = ("--set", daemon.listen)
        assert small.call("config", "diff", str(wanted), *there).err == ""
        small.write(WORKERS + "[retry]\nmax_retries = 9\n")
        late = small.call("config", "diff", str(wanted), *there)
        assert (late.code, "runs with a configuration other than" in late.err) == (0, True)
