"""The HTTP API: every route, what it takes and returns, and the OpenAPI document made of both."""
