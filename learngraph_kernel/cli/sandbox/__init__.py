"""Subcommands of `learngraph sandbox`: one module each (`check-url` is `check_url`), each with a click `command`."""
