"""`harness doctor`. Read `doctor_command` first: what this machine can enforce, tried by `trials` with the list in `attempts`.

`doctor_model` tries the model instead. Nothing outside a temporary folder and this process is touched.
"""
