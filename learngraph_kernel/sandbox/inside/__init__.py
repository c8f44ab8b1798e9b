"""What runs inside the container: standard library only, no import of the rest of the package."""
