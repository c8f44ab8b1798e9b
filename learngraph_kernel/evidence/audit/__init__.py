"""Checking the numbers of any text against any tables; the function behind `learngraph audit`."""
