"""Other programs' result files, written from a store and read into one."""
