"""Python files of users as suites."""
