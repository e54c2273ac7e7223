"""Every kind of request, to an application in this process."""

import json
import threading

import numpy as np
import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from subgnn.inference.explain import Explainer
from subgnn.ragged import Ragged
from subgnn.serve import routes
from subgnn.serve.app import create_app
from subgnn.serve.limits import Limits
from tests.serve.examples import HOST, SOME, SOME_IDS, client, run_folder, served

ROWS = Ragged.from_rows([SOME_IDS, [5]])
ASKED = {"subgraphs": [SOME, ["gene5"]]}


def training_nodes(run):
    return run.subgraphs.nodes.take(run.subgraphs.indices("train"))


def post(asking, question, body, **options):
    return asking.post(f"/api/runs/small/{question}", json=body, **options)


def test_health_cards_and_metrics(asking):
    assert asking.get("/health").json()["status"] == "ok"
    (card,) = asking.get("/api/runs").json()["runs"]
    assert card == asking.get("/api/runs/small").json()
    assert card["classes"] == ["clique0", "clique1", "clique2"]
    assert card["num_nodes"] == 24
    assert card["limits"]["subgraphs"] == Limits().subgraphs
    assert card["test"]["micro_f1"] == json.loads((run_folder() / "run.json").read_text())["test"]["micro_f1"]
    assert {"recipe", "dataset", "seed", "trained_with", "served_by", "graph_hash"} <= set(card)
    metrics = asking.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert 'subgnn_requests_total{method="GET",route="/health",status="200"} 1.0' in metrics.text
    families = {family.name for family in text_string_to_metric_families(metrics.text)}
    documented = "requests request_seconds waited_seconds inside refused subgraphs run_info drift_p_value"
    assert {name for name in families if name.startswith("subgnn_")} == {f"subgnn_{one}" for one in documented.split()}
    assert {"process_resident_memory_bytes", "process_start_time_seconds"} <= families


@pytest.mark.parametrize("task", ["multi-class", "binary", "multi-label", "regression"])
def test_predict_is_the_predictor(task):
    with client(task) as asking:
        answer = post(asking, "predict", ASKED).json()
        again = post(asking, "predict", {"subgraphs": [each["names"] for each in answer["predictions"]]}).json()
    scores = served(task).predictor.probabilities(ROWS)
    assert answer["task"] == task
    assert [each["nodes"] for each in answer["predictions"]] == [SOME_IDS, [5]]
    assert again == answer
    for each, row in zip(answer["predictions"], scores, strict=True):
        given = [each["value"]] if task == "regression" else list(each["probabilities"].values())
        np.testing.assert_allclose(given, row, atol=1e-6)
        if task in ("multi-class", "binary"):
            assert each["label"] == served(task).predictor.checkpoint.spec.classes[int(row.argmax())]


def numbers(answer, path=()):
    """Every value of a JSON document by its path."""
    if not isinstance(answer, dict | list | tuple):
        return {path: answer}
    items = answer.items() if isinstance(answer, dict) else enumerate(answer)
    return {place: value for key, one in items for place, value in numbers(one, (*path, key)).items()}


def test_embed_and_explain_are_the_librarys(asking):
    vectors = post(asking, "embed", ASKED).json()
    np.testing.assert_allclose(vectors["vectors"], served().predictor.embeddings(ROWS), rtol=1e-5)
    assert vectors["width"] == len(vectors["vectors"][0])
    found = post(asking, "explain", ASKED).json()["explanations"]
    explainer = Explainer(served().predictor, background=training_nodes(served()), max_nodes=200, max_anchors=50)
    # The server computes on its own number of threads, so the last digit may differ.
    wanted = numbers([each.to_json() for each in explainer.explain(ROWS)])
    assert numbers(found) == pytest.approx(wanted, abs=2e-6)


def test_draw(asking):
    drawing = post(asking, "draw", {"nodes": SOME, "most": 3}).json()
    inside = [node["name"] for node in drawing["nodes"] if node["kind"] == "inside"]
    assert inside == ["GENE0", "GENE1", "GENE2", "GENE9", "HLA-A"]
    assert len([node for node in drawing["nodes"] if node["kind"] != "inside"]) == 3


def test_complete_is_the_librarys(asking):
    answer = post(asking, "complete", ASKED | {"top": 3}).json()
    for nodes, given, found in zip(
        ROWS, answer["completions"], served().completer().complete(ROWS, top=3), strict=True
    ):
        assert [each["id"] for each in given] == found.nodes.tolist()
        assert not set(nodes.tolist()) & {each["id"] for each in given}
        np.testing.assert_allclose([each["probability"] for each in given], found.probabilities, rtol=1e-5)
        assert [each["neighbours"] for each in given] == found.links.tolist()
        assert [each["reason"] for each in given] == found.reasons
        assert all(max(each["contributions"], key=each["contributions"].get) == each["reason"] for each in given)
    (few,) = post(asking, "complete", {"subgraphs": [SOME], "among": ["GENE3", "HLA-A", "#4"]}).json()["completions"]
    assert {each["name"] for each in few} == {"GENE3", "GENE4"}
    wrong = post(asking, "complete", {"subgraphs": [SOME], "among": ["GENE3", "NOBODY"]})
    assert (wrong.status_code, wrong.json()["nodes"]) == (422, ["NOBODY"])
    assert wrong.json()["error"] == "among: 1 node is not known: 'NOBODY'"
    for among in ([], ["#3"] * 10_001):
        assert post(asking, "complete", {"subgraphs": [SOME], "among": among}).status_code == 422


def test_search_and_resolve(asking):
    found = asking.get("/api/runs/small/nodes", params={"q": "hla"}).json()["nodes"]
    assert found == [
        {"id": 22, "name": "HLA-A", "matched": "HLA-A", "degree": served().predictor.graph.neighbors_of(22).size}
    ]
    assert len(asking.get("/api/runs/small/nodes", params={"q": "gene", "limit": 5}).json()["nodes"]) == 5
    assert len(asking.get("/api/runs/small/nodes", params={"q": "gene", "limit": 1000}).json()["nodes"]) == 22
    answer = post(asking, "resolve", {"nodes": ["gene3", "#4", "ö-sma", "nobody", 9, "#99", "GENE3"]}).json()
    assert [(node["given"], node["id"]) for node in answer["nodes"]] == [("gene3", 3), ("#4", 4), ("ö-sma", 23)]
    assert answer["unknown"] == ["nobody", "9", "#99"]
    assert post(asking, "resolve", {"nodes": []}).json() == {"nodes": [], "unknown": [], "several": []}


UNKNOWN = [
    (["NOBODY"], "subgraph 0: 1 node is not known: 'NOBODY'", ["NOBODY"]),
    (["#0", 24, "x", "y", "z"], "subgraph 0: 4 nodes are not known: '24', 'x', 'y', ...", ["24", "x", "y", "z"]),
    (["9" * 18], "1 node is not known", ["9" * 18]),
    (["<script>alert(1)</script>"], "1 node is not known", ["<script>alert(1)</script>"]),
]


@pytest.mark.parametrize(("nodes", "message", "named"), UNKNOWN)
@pytest.mark.parametrize("question", ["predict", "embed", "explain", "complete", "draw", "search"])
def test_unknown_nodes_are_named(asking, question, nodes, message, named):
    body = {"nodes": nodes} if question == "draw" else {"subgraphs": [nodes]}
    answer = asking.post(
        f"/api/runs/small/{question}", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert answer.json()["nodes"] == named
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("limits", [None, Limits(quick_nodes=1)])
def test_unknown_nodes_are_dropped_and_listed_where_that_is_asked_for(limits):
    body = {"subgraphs": [[*SOME, "NOBODY", "#99"], ["gene5"]], "unknown": "drop"}
    with client(limits=limits) as asking:
        keys = {"predict": "predictions", "embed": "vectors", "explain": "explanations", "complete": "completions"}
        for question, key in keys.items():
            answer, plain = (post(asking, question, given).json() for given in (body, ASKED))
            assert answer["dropped"] == [["NOBODY", "#99"], []]
            assert plain["dropped"] == [[], []]
            for one, other in zip(answer[key], plain[key], strict=True):
                if question == "predict":
                    assert (one.pop("new"), other.pop("new")) == (2 if one["known"] > 1 else 0, 0)
                assert one == other
        nothing = post(asking, "predict", body | {"subgraphs": [["NOBODY"]]})
    assert nothing.status_code == 422
    assert nothing.json()["nodes"] == ["NOBODY"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b'{"subgraphs": [[' + b"1" * 6000 + b"]]}", 400),
        (b'{"subgraphs": []}', 422),
        (b'{"subgraphs": [[]]}', 422),
        (b'{"subgraphs": [[-1]]}', 422),
        (b'{"subgraphs": [[1.5]]}', 422),
        (b'{"subgraphs": [[' + b"null," * 50_000 + b"0]]}", 422),
        (b'{"subgraphs": [[""]]}', 422),
        (b'{"subgraphs": [["\\ud800"]]}', 422),
        (b'{"subgraphs": [[1e400]]}', 422),
        (b'{"subgraphs": [["' + b"x" * 201 + b'"]]}', 422),
        (b'{"subgraphs": [[0]], "more": 1}', 422),
        (b'{"subgraphs": {"0": [1]}}', 422),
        (b"[[0]]", 422),
        (b'{"subgraphs":' * 50_000, 400),
        (b'{"subgraphs": ' + b"[" * 900 + b"]" * 900 + b"}", 422),
        (b'{"subgraphs": [[1e' + b"9" * 4_000 + b"]]}", 422),
        (b'{"subgraphs": [["a"]], "unknown": "' + b"x" * 100_000 + b'"}', 422),
        (b'{"' + b"\\ud800" * 10_000 + b'": 1}', 422),
    ],
)
def test_invalid_requests_are_refused_without_an_echo(asking, body, status):
    answer = asking.post("/api/runs/small/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "hint", "nodes"}
    assert len(answer.content) < 1000


def test_a_hundred_thousand_unknown_keys_have_a_short_answer(asking):
    body = {f"k{i}": 0 for i in range(80_000)}
    answer = post(asking, "predict", {**body, "subgraphs": [[0]]})
    assert answer.status_code == 422
    accepted = "subgraphs, unknown, coverage, coverage_by_class, min_known"
    assert answer.json()["error"] == f"body: unknown key 'k0'; accepted: {accepted}"


def test_limits_are_kept():
    small = Limits(subgraphs=3, nodes=10, explained=1, body_bytes=2000)
    with client(limits=small) as asking:
        assert post(asking, "predict", {"subgraphs": [["#0"]] * 3}).status_code == 200
        assert "at most 3" in post(asking, "predict", {"subgraphs": [["#0"]] * 4}).json()["hint"]
        assert "at most 10" in post(asking, "embed", {"subgraphs": [["#0"] * 11]}).json()["hint"]
        assert post(asking, "explain", {"subgraphs": [["#0"]] * 2}).json()["hint"].endswith("at most 1")
        assert post(asking, "draw", {"nodes": ["#0"] * 11}).status_code == 422
        assert post(asking, "resolve", {"nodes": ["#0"] * 11}).status_code == 422
        large = post(asking, "predict", {"subgraphs": [["#0"] * 1000]})
        assert large.status_code == 413
        assert "2,000 bytes" in large.json()["error"]

        def endless():
            for _ in range(100):
                yield b" " * 1000

        assert asking.post("/api/runs/small/predict", content=endless()).status_code == 413


def test_work_out_of_time_is_503():
    with client(limits=Limits(seconds=1e-9)) as asking:
        answer = post(asking, "predict", {"subgraphs": [["#0"]]})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert "fewer" in answer.json()["hint"]


PATHS = [
    *("/api/runs/nobody/predict", "/api/runs/../../etc/passwd", "/api/runs/%2e%2e%2f%2e%2e"),
    *("/static/../app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/", "/static/main.js%00.html"),
    *("/static/" + "x" * 4000, "/docs", "/nothing", "/health/"),
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_that_lead_nowhere(asking, path):
    answer = asking.get(path)
    assert answer.status_code in (404, 405), path
    assert "error" in answer.json()


def test_methods_and_unknown_runs(asking):
    assert asking.get("/api/runs/small/predict").status_code == 405
    assert asking.request("BREW", "/health").status_code == 405
    answer = post(asking, "../smal/predict", ASKED)
    assert answer.status_code == 404
    assert "did you mean 'small'?" in answer.json()["hint"]


def test_every_answer_has_the_headers_that_keep_browsers_safe(asking):
    for path in ("/", "/health", "/nothing", "/static/style.css"):
        headers = asking.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
    assert asking.get("/health", headers={"host": "evil.example"}).status_code == 400
    assert asking.get("/health", headers={"origin": "http://evil.example"}).status_code == 403
    preflight = asking.options("/api/runs/small/predict", headers={"origin": "http://evil.example"})
    assert preflight.status_code == 403


def test_files_of_the_page_are_served_and_not_again(asking):
    page = asking.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    kinds = {"main.js": "text/javascript", "style.css": "text/css", "vendor/cytoscape.esm.min.mjs": "text/javascript"}
    for path, kind in kinds.items():
        answer = asking.get(f"/static/{path}")
        assert answer.headers["content-type"].startswith(kind)
        assert asking.get(f"/static/{path}", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    assert "onclick" not in page.text
    assert "<style" not in page.text
    assert "http://" not in page.text.replace("http://www.w3.org", "")


def test_a_mistake_of_ours_is_500_and_says_nothing_more(asking, monkeypatch):
    monkeypatch.setattr(type(served()), "predict_or_embed", lambda *_: 1 // 0)
    answer = post(asking, "predict", {"subgraphs": [["#0"]]})
    assert answer.status_code == 500
    assert "ZeroDivision" not in answer.text
    assert answer.headers["x-request-id"] in answer.json()["hint"]


def test_a_baseline_answers_and_one_that_cannot_says_so():
    for method, status in (("bag", 200), ("mn-gin", 422)):
        run = served(method=method)
        run.warm_up()
        with TestClient(create_app({"small": run}), base_url=HOST, raise_server_exceptions=False) as asking:
            assert post(asking, "predict", {"subgraphs": [SOME]}).status_code == status
            assert post(asking, "draw", {"nodes": SOME}).status_code == 200
            own = [f"#{node}" for node in run.subgraphs.nodes[0]]
            assert post(asking, "predict", {"subgraphs": [own]}).status_code == 200
            explained = post(asking, "explain", {"subgraphs": [own]})
            assert explained.status_code == 200
            assert explained.json()["explanations"][0]["by_channel"] == []
            near = post(asking, "search", {"subgraphs": [own], "top": 1}).json()["results"][0]["nearest"]
            assert near[0]["nodes"] == run.subgraphs.nodes[0].tolist()
            failed = post(asking, "predict", {"subgraphs": [SOME]}).json()
    assert "mn-gin" in failed["error"] + failed["hint"]


JSON_BODY = {"content-type": "application/json"}


def test_large_bodies_are_parsed_outside_the_event_loop(asking, monkeypatch):
    threads = []
    real = routes.parse_body

    def parse(model, body):
        threads.append(threading.current_thread().name)
        return real(model, body)

    monkeypatch.setattr(routes, "parse_body", parse)
    large = {"subgraphs": [["GENE0"] * 200] * 20}
    assert len(json.dumps(large)) > routes.SMALL_BODY
    for question in ("predict", "embed"):
        assert post(asking, question, large).status_code == 200
    assert threads == ["subgnn-parse_0"] * 2
    assert post(asking, "predict", {"subgraphs": [SOME]}).status_code == 200
    assert threads[2] != "subgnn-parse_0"  # handing over costs more than it takes
    # The same whatever the size.
    answers = [asking.post("/api/runs/small/predict", content=b"{" + b" " * n, headers=JSON_BODY) for n in (0, 20_000)]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert answers[0].json() == answers[1].json()
