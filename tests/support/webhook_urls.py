"""URLs for webhooks, good and bad: every way to ask for one gives the same answers."""

GOOD = (
    "https://example.com",
    "https://example.com:8443/hooks?token=a%20b&x=[1]",
    "http://127.0.0.1:8000/",
    "https://[2606:4700::1111]:8443/x",
    "https://under_score.example/" + "x" * 1900,
    "https://a.example?to=b@c.example",
)

# And the beginning of what is wanted in its place.
REFUSED: tuple[tuple[object, str], ...] = (
    ("", "a URL of 1 to 2000 characters"),
    (7, "a URL of 1 to 2000 characters"),
    ("https://example.com/" + "x" * 2000, "a URL of 1 to 2000 characters"),
    ("https://exämple.com/", "a URL of printable ASCII"),
    ("https://example.com/a b", "a URL of printable ASCII"),
    ("https://example.com/\n", "a URL of printable ASCII"),
    ("https://example.com\\@127.0.0.1/", "a URL of printable ASCII"),
    ("ftp://example.com/", "a URL that starts with https://"),
    ("HTTPS://example.com/", "a URL that starts with https://"),
    ("example.com", "a URL that starts with https://"),
    ("file:///etc/passwd", "a URL that starts with https://"),
    ("python:shop.hooks:told", "a URL that starts with https://"),
    ("https://user:hunter2@example.com/", "a URL without user and password"),
    ("https://user@example.com/", "a URL without user and password"),
    ("https://", "a URL with a host"),
    ("https:///x", "a URL with a host"),
    ("https://:443/x", "a URL with a host"),
    ("https://[::1/x", "a URL with a host"),
    ("https://a,b/x", "a URL with a host"),
    ("https://example.com:x/", "a URL with a host"),
    ("https://example.com:0/", "a port of 1 to 65535"),
    ("https://example.com:65536/", "a port of 1 to 65535"),
    ("https://example.com:1234567890123/", "a port of 1 to 65535"),
    ("https://example.com:/", "a port of 1 to 65535"),
    ("https://example.com/#hunter2", "a URL without #"),
)
