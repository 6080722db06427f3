"""``torchgauge matrix``: several versions of torch and its libraries, measured in turns on one machine."""
