"""Many tasks on one machine: one task in one folder (`run --task`), and a file of them (`batch`); it decides no call."""
