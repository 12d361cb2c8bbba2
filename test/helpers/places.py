"""Where the files of this repository are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
EXAMPLES = ROOT / "examples"
DATA = ROOT / "test" / "helpers" / "data"
