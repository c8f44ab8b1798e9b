"""The escape suite: what a hostile notebook would try, against the box and against a container without it."""
