"""The broker: what a kernel may ask, checked against its ticket and recorded before it is answered."""
