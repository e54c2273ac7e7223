"""The lines of a page are the epochs of metrics.jsonl: read back through the ticks that stand at the axes."""

import json
import math

import numpy as np
import pytest

from subgnn.api.train_recipe import train
from subgnn.reports.charts import Chart, Line, number_axes
from subgnn.reports.run_page import epoch_chart
from subgnn.training.run_dir import METRICS
from tests.training.examples import dataset, recipe

from .reading import drawn, read


def draw(chart: Chart) -> str:
    return drawn("charts.html", "chart", chart)


def ruler(svg, kind, along, *, log=False):
    """From places back to values, by the ticks of an axis: what a reader's eye does."""
    shift = {"x": 0.0, "y": -4.0}[along]
    ticks = [(float(t.attributes[along]) + shift, float(t.text)) for t in svg.all("text", class_=f"tick {kind}")]
    places, values = np.array(ticks).T
    slope, start = np.polyfit(places, np.log(values) if log else values, 1)
    return lambda place: np.exp(slope * place + start) if log else slope * place + start


def points(line):
    return np.array([pair.split(",") for pair in line.attributes["points"].split()], float)


def test_the_lines_are_the_epochs_of_the_run(tmp_path):
    train(dataset(), recipe(8), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / METRICS).read_text().splitlines()]
    results = json.loads((tmp_path / "run" / "run.json").read_text())
    page = read((tmp_path / "run" / "report.html").read_text())
    losses, score = page.one("section", id="curves").all("figure")
    for figure, names in ((losses, ["train_loss", "val_loss"]), (score, ["val_micro_f1"])):
        svg = figure.all("svg", class_="chart")[0]
        x, y = ruler(svg, "x", "x"), ruler(svg, "y", "y")
        lines = svg.all("polyline")
        assert len(lines) == len(names)
        for line, name in zip(lines, names, strict=True):
            places = points(line)
            np.testing.assert_allclose(x(places[:, 0]), [r["epoch"] for r in records], atol=0.02)
            np.testing.assert_allclose(y(places[:, 1]), [r[name] for r in records], atol=0.01)
        marked = svg.one("line", class_="chosen").attributes
        assert x(float(marked["x1"])) == pytest.approx(results["selected_epoch"], abs=0.05)
        titles = [rect.one("title").text for rect in svg.all("rect", class_="hover")]
        for title, record in zip(titles, records, strict=True):
            assert title.startswith(f"epoch {record['epoch']}: ")
            assert all(f"{record[name]:.4g}" in title for name in names)


def test_a_steep_fall_is_drawn_in_logarithms():
    values = [1000.0, 500.0, *np.linspace(2, 1, 30)]
    records = [{"epoch": i, "loss": float(v)} for i, v in enumerate(values)]
    figure = read(draw(epoch_chart(records, 0, "Loss", {"loss": ("loss", "first")})))
    assert figure.one("figcaption").text == "Loss (log scale)"
    svg = figure.all("svg", class_="chart")[0]
    y = ruler(svg, "y", "y", log=True)
    np.testing.assert_allclose(y(points(svg.one("polyline"))[:, 1]), values, rtol=0.01)


def test_a_value_that_is_undefined_leaves_a_gap():
    broken = Line([0, 1, 2, 3, 4], [0.1, 0.2, math.nan, 0.3, 0.4], "first")
    lines = read(draw(Chart("", "", number_axes((0, 4), (0, 1), "", ""), lines=[broken]))).all("polyline")
    assert [len(points(line)) for line in lines] == [2, 2]
