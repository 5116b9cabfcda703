"""What is measured: run a module of this folder to see its figures."""
