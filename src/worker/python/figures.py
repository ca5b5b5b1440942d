# SPDX-License-Identifier: Apache-2.0
"""The backend of matplotlib in a jail: there is no display, so show() saves each open figure in the folder where the
program started, as a window would have shown it, and closes it. It is frozen into cordon-python (freeze.py) and named by
MPLBACKEND."""
import os

from matplotlib._pylab_helpers import Gcf
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas
from matplotlib.backend_bases import FigureManagerBase as FigureManager

__all__ = ["FigureCanvas", "FigureManager", "show"]
FOLDER = "/workspace"


def free_name():
    number = 1
    while os.path.lexists(path := f"{FOLDER}/figure-{number}.png"):
        number += 1
    return path


def show(*args, **kwargs):
    for manager in Gcf.get_all_fig_managers():
        manager.canvas.figure.savefig(free_name())
    Gcf.destroy_all()
