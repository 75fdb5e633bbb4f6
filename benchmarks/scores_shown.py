"""What is shown of the table of `scores.py`."""
import pandas as pd
from matplotlib.figure import Figure


def print_verdict(rows: pd.DataFrame) -> None: pass
def draw_errors(rows: pd.DataFrame) -> Figure: return Figure()
def draw_coverage(rows: pd.DataFrame) -> Figure: return Figure()
