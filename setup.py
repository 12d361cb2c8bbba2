"""For tools that ask for a setup.py; everything is said in pyproject.toml."""

from setuptools import setup

setup()
