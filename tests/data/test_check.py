from subgnn.data.describe import check
from tests.cli.command import call
from tests.data.samples import FEATURES, SUBGRAPHS, WHOLE, write_files, write_sample

MANY = {
    "edge_list.txt": "0 1\n1\nx 2\n2 3\n3 4 5\n",
    "subgraphs.tsv": "0-9\ta\ttrain\n0\ta\ttset\n\tb\tval\n1\t\ttest\n2\tb\ttest\n",
    "nodes.tsv": "0\ta\n0\tb\n1\n",
    "features.npy": FEATURES[:-1],
    "dataset.json": '{"task": "guess"}',
}


def test_a_good_dataset(tmp_path):
    folder = write_files(tmp_path / "x", WHOLE)
    problems, dataset = check(folder)
    assert (problems.num_errors, problems.errors, problems.warnings) == (0, [], [])
    assert dataset.name == "five"
    called = call("data", "check", folder)
    assert (called.code, called.err) == (0, "")
    assert called.out == f"{folder}: fine; 5 nodes, 5 edges, 6 subgraphs\nnext: subgnn data describe {folder}\n"


def test_every_problem_of_every_file_is_listed(tmp_path):
    folder = write_files(tmp_path / "x", MANY)
    called = call("data", "check", folder)
    assert called.code == 2
    listed = [line.removeprefix(f"error: {folder}/").split(": ")[0] for line in called.out.splitlines()]
    assert sorted(listed) == [
        "dataset.json",
        "edge_list.txt:2",
        "edge_list.txt:3",
        "edge_list.txt:5",
        "features.npy",
        "nodes.tsv:2",
        "nodes.tsv:3",
        "subgraphs.tsv:2",
        "subgraphs.tsv:3",
        "subgraphs.tsv:4",
    ]
    assert called.error == f"{folder}: 10 problems; fix the files and check again"


def test_very_many_problems_are_counted(tmp_path):
    folder = write_sample(tmp_path / "y", {"subgraphs.tsv": SUBGRAPHS + "x\ta\ttrain\n" * 1500})
    called = call("data", "check", folder)
    assert len(called.out.splitlines()) == 1001
    assert called.out.endswith("and 500 more\n")
    assert called.error.startswith(f"{folder}: 1,500 problems")
    assert call("data", "check", folder, "--json").json["num_errors"] == 1500


def warnings_of(folder):
    problems, dataset = check(folder)
    assert dataset is not None
    return [str(problem).removeprefix(str(folder)) for problem in problems.warnings]


def test_warnings(tmp_path):
    assert warnings_of(write_sample(tmp_path / "a", {"edge_list.txt": "0 1\n1 1\n3 4\n0 1\n"})) == [
        "/edge_list.txt: dropped 1 self loop and 1 repeated edge"
    ]
    assert warnings_of(write_sample(tmp_path / "b", {"subgraphs.tsv": SUBGRAPHS + "1\tc\ttrain\n"})) == [
        ": 1 class has one subgraph ('c'); it cannot be both learned and tested"
    ]
    assert warnings_of(
        write_sample(tmp_path / "c", {"subgraphs.tsv": SUBGRAPHS + "1-0\tb\ttest\n0-1\tb\ttrain\n"})
    ) == [
        ": 1 subgraph has the same nodes as one in another split (first: subgraph 6 of test and 0 of train); "
        "a model can memorise their labels"
    ]
