"""Statements come from files; a part of one may be left out."""

from musterd.store.sqlfiles import load_statements


def test_a_plain_form_is_the_statement_without_what_stands_apart() -> None:
    statements = load_statements("musterd.store.postgres")
    plain, whole = statements["claim_plain"], statements["claim"]
    assert plain.startswith("-- claim_plain: takes the first due jobs")
    assert whole.count("/*more{*/") == whole.count("/*}*/") > 0
    assert "{*/" not in plain
    for name in ("%(most)s", "%(caps)s", "%(mark_ids)s"):
        assert name in whole
        assert name not in plain


def test_a_statement_without_such_parts_has_one_form() -> None:
    statements = load_statements("musterd.store.postgres")
    assert "settle" in statements
    assert "settle_plain" not in statements
