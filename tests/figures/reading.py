"""Checks that a figure is readable: nothing is cut off, and no type is too small."""

from matplotlib.figure import Figure
from matplotlib.text import Text

from dpmc.reports.plots import style


def legend_texts(figure: Figure) -> list[Text]:
    """Return the texts of all legends, of the figure, of its parts and within panels."""
    legends = [legend for part in (figure, *figure.subfigs) for legend in part.legends]
    legends += filter(None, (axes.get_legend() for axes in figure.axes))
    return [text for legend in legends for text in legend.get_texts()]


def assert_readable(figure: Figure) -> None:
    """Fail for text that is cut off, smaller than 7 points, or that runs into a title."""
    with style.context():
        figure.draw_without_rendering()
    whole = figure.bbox
    assert figure.get_figwidth() == style.TEXT_WIDTH and figure.get_figheight() < 8.6
    everything = legend_texts(figure)
    assert everything
    for axes in figure.axes:
        everything += [
            axes.title,
            axes._left_title,
            axes.xaxis.label,
            axes.yaxis.label,
            *axes.texts,
        ]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            everything += [tick.label1 for tick in ticks]  # others are not drawn
    for text in everything:
        if not text.get_text():
            continue
        assert text.get_fontsize() >= 7.0
        box = text.get_window_extent()
        assert box.x0 >= whole.x0 - 1 and box.x1 <= whole.x1 + 1, text.get_text()
        assert box.y0 >= whole.y0 - 1 and box.y1 <= whole.y1 + 1, text.get_text()
    for axes in figure.axes:
        ends = [a.get_window_extent() for a in (axes._left_title, *axes.texts)]
        assert all(note.y1 < ends[0].y0 + 1 for note in ends[1:]), "a note runs into the title"
