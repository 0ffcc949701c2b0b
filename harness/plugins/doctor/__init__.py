"""`harness doctor`: test which confinement this machine can enforce. Read `doctor_command` first.

`trials` carries out the tests in `attempts`. `doctor_model` tests the model instead. Only a temporary folder and this
process are touched.
"""
