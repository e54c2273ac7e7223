"""The example on rare diseases runs as it stands, on what it makes up itself and on a folder that it is given."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.pages import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of examples, where Python looks for modules as it does for a script; work is done elsewhere."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.chdir(tmp_path)
    for name in ("RARE_DISEASE_DATA", "RARE_DISEASE_OUT"):
        monkeypatch.delenv(name, raising=False)
    return ROOT / "examples"


def test_a_rare_disease_from_data_to_a_picture(examples, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RARE_DISEASE_EPOCHS", "6")
    found = runpy.run_path(str(examples / "rare_disease.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "MADE UP: not medical data" in printed
    why = found["why"]
    assert set(why.names) == set(found["patient"])
    assert f"{max(why.probabilities):6.1%}  {found['predicted']}\n" in printed
    for title in ("phenotypes", "components", "channels", "anchors"):
        assert f"\n{title}, towards {found['predicted']}\n" in printed
    for item in (*why.by_node, *why.by_channel):
        assert f"  {why.of_class(item.contributions):+6.2f}  {item.name}\n" in printed
    # The patient has a part of a disease of the test split, and one thing more; no disease is the same.
    diseases, names = found["diseases"], found["graph"].names
    assert found["disease"] in diseases.indices("test")
    disease = set(diseases.nodes[found["disease"]].tolist())
    assert {names.find(name) for name in found["own"]} < disease
    assert names.find(found["other"]) not in disease
    assert all(found["nodes"].tolist() != row.tolist() for row in diseases.nodes)
    out = tmp_path / "rare_disease"
    written = ET.parse(out / "patient.svg")
    assert set(found["patient"]) <= {text.text for text in written.iter("{http://www.w3.org/2000/svg}text")}
    assert (out / "run" / "report.html").is_file()

    # Once more, on a folder that is there already: nothing is made up, and the first run stays.
    monkeypatch.setenv("RARE_DISEASE_EPOCHS", "1")
    monkeypatch.setenv("RARE_DISEASE_DATA", str(out / "made_up"))
    again = runpy.run_path(str(examples / "rare_disease.py"), run_name="__main__")
    assert "MADE UP" not in capsys.readouterr().out
    assert again["patient"] == found["patient"]
    assert again["run"].name == "run-2"
