"""Devices side by side, from what stores hold: what each can do, and what one lacks that others have.

``reading`` takes rows from stores, ``columns`` chooses the columns, ``gathering`` arranges rows into the
records of ``table``, ``differences`` compares columns; ``text``, ``markdown``, ``as_csv`` and ``as_json``
write them down. Nothing here runs a device.
"""
