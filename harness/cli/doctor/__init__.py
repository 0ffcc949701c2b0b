"""`harness doctor`: what this machine can enforce, tried."""
