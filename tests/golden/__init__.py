"""The golden set: a record of what must not change while code is moved."""
