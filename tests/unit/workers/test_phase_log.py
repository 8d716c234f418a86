"""The logs of phases as one log of their attempt."""

from musterd.workers.pipeline import PhaseLog


def test_one_phase_that_wrote_has_no_heading() -> None:
    log = PhaseLog(1_000)
    assert log.text() is None
    log.add("download", None)
    log.add("process", "one line\n")
    log.add("upload", "")
    assert log.text() == "one line\n"


def test_several_have_a_heading_each_in_their_order() -> None:
    log = PhaseLog(1_000)
    log.add("download", "a\nb")
    log.add("process", None)
    log.add("upload", "c\n")
    assert log.text() == "-- phase download\na\nb\n-- phase upload\nc\n"


def test_all_of_them_together_are_cut_to_size() -> None:
    log = PhaseLog(100)
    for name in "abc":
        log.add(name, name * 90 + "\n")
    text = log.text()
    assert text is not None
    assert text.startswith("-- phase a\naaa")
    assert text.endswith("ccc\n")
    assert "bytes were not kept" in text
    assert len(text) < 200
