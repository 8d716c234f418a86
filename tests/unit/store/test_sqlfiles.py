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


def test_what_several_have_in_common_stands_in_each() -> None:
    statements = load_statements("musterd.store.postgres")
    assert "levels" not in statements
    for name in ("claim", "claim_targets", "observe", "next_due", "not_yet_due", "outlook"):
        for form in (name, f"{name}_plain"):
            assert statements[form].count("ladder (priority) as (") == 1
            assert "{levels}" not in statements[form]


def test_a_statement_without_such_parts_has_one_form() -> None:
    statements = load_statements("musterd.store.postgres")
    assert "settle" in statements
    assert "settle_plain" not in statements
