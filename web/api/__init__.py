"""The HTTP API: every route, what it takes and gives, and the OpenAPI document made of both."""
