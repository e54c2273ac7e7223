"""Requests made up from /openapi.json: none makes the server fail, and all answers are as described."""

from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from subgnn.serve.app import AccessRules, create_app
from tests.serve.examples import served

schemathesis = pytest.importorskip("schemathesis")
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


QUESTIONS = ("resolve", "predict", "table", "embed", "explain", "complete", "draw", "search")
OPERATIONS = [
    *((path, "GET") for path in ("/health", "/metrics", "/api/runs", "/api/runs/{run}", "/api/runs/{run}/nodes")),
    ("/api/graph", "POST"),
    *((f"/api/runs/{{run}}/{question}", "POST") for question in QUESTIONS),
]


@cache
def described():
    app = create_app({"small": served()}, access=AccessRules(names=frozenset({"testserver"})))
    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.quick(8)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_makes_the_server_fail(path, method, mode):
    @settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(described()[path][method].as_strategy(generation_mode=mode))
    def ask(case):
        if "run" in case.path_parameters and mode is GenerationMode.POSITIVE:
            case.path_parameters["run"] = "small"
        case.call_and_validate(checks=CHECKS)

    try:
        ask()
    except Unsatisfiable:
        pytest.skip("there is no way to ask this wrongly")


def test_all_operations_are_asked():
    found = {(each.ok().path, each.ok().method.upper()) for each in described().get_all_operations()}
    assert found == set(OPERATIONS)
