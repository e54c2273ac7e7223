"""Run the tests as other machines would: on other processors, and as a user who may write almost nowhere.

    python tests/portable.py [arguments of pytest]

Libraries choose their loops by the processor; environment variables make them take those of another one. The last run
is by a user who is not root, whose home is not writable, in a path with spaces and letters beyond ASCII.
"""

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TREE = Path(__file__).resolve().parents[1]
PROCESSORS = (
    "OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=default OMP_NUM_THREADS=1",
    "OPENBLAS_CORETYPE=Zen ATEN_CPU_CAPABILITY=avx2 OMP_NUM_THREADS=2",
    "OPENBLAS_CORETYPE=Nehalem ATEN_CPU_CAPABILITY=default NUMBA_CPU_NAME=generic OMP_NUM_THREADS=2",
    "OPENBLAS_CORETYPE=SkylakeX ATEN_CPU_CAPABILITY=avx2 OMP_NUM_THREADS=1",
)
_USER = "nobody"
_UNUSED = ("__pycache__", "site-packages", "test", "idlelib", "tkinter")


def main(arguments: list[str]) -> int:
    """Run every configuration; 1 if a test failed in any."""
    found = {}
    for name in PROCESSORS:
        if "SkylakeX" in name and "avx512f" not in Path("/proc/cpuinfo").read_text():
            found[name] = "skipped, this processor has no AVX-512"
        else:
            variables = dict(word.split("=") for word in name.split())
            found[name] = _run_tests(name, [sys.executable], arguments, cwd=TREE, env=os.environ | variables)
    name = f"as {_USER}, HOME not writable, in a path with spaces and letters beyond ASCII"
    found[name] = _run_as_another_user(name, arguments)
    print(*(f"{name}: {what}" for name, what in found.items()), sep="\n", flush=True)
    return int("failed" in found.values())


def _run_tests(name: str, python: list[str], arguments: list[str], **options: Any) -> str:
    """Run pytest, and say whether all tests passed."""
    print(f"== {name}", flush=True)
    command = [*python, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-p", "no:cacheprovider", *arguments]
    return "failed" if subprocess.run(command, check=False, **options).returncode else "passed"


def _run_as_another_user(name: str, arguments: list[str]) -> str:
    """Whether the tests passed, or why they were skipped."""
    try:
        user = pwd.getpwnam(_USER)
    except KeyError:
        return f"skipped, there is no user {_USER!r}"
    if os.getuid() != 0:
        return "skipped, only root can run something as another user"
    with tempfile.TemporaryDirectory(prefix="subgnn-portable-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        tree, home, temporary = folder / "Zwölf Bäume, één map 木" / "sub gnn", folder / "home", folder / "tmp"
        _copy_tree(tree)
        home.mkdir(mode=0o555)
        for own in (temporary, folder / "kernels"):
            own.mkdir()
            os.chown(own, user.pw_uid, user.pw_gid)
        python = _copy_environment(folder / "environment")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "PYTHON", "SUBGNN_"))}
        env = kept | {
            "HOME": str(home),
            "USER": _USER,
            "TMPDIR": str(temporary),
            "NUMBA_CACHE_DIR": str(folder / "kernels"),
            "PYTHONPATH": f"{tree / 'src'}",
            "PATH": f"{python.parent}:{os.environ.get('PATH', os.defpath)}",
            "LD_LIBRARY_PATH": str(folder / "environment" / "base" / "lib"),
            # git trusts no folder of another user that it is not told of.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        return _run_tests(name, [str(python)], arguments, cwd=tree, env=env, **as_user)


def _copy_tree(tree: Path) -> None:
    """The files that git knows, or would add; nobody but root may write there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=TREE, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (TREE / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, tree / name)
    for arguments in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *arguments], cwd=tree, check=True)


def _copy_environment(folder: Path) -> Path:
    """A virtual environment with the installed packages and a copy of the interpreter, which may be in root's home."""
    base = Path(sys.base_prefix)
    shutil.copytree(base / "lib", folder / "base" / "lib", ignore=shutil.ignore_patterns(*_UNUSED), symlinks=True)
    (folder / "base" / "bin").mkdir()
    interpreter = folder / "base" / "bin" / Path(sys.executable).resolve().name
    shutil.copy2(Path(sys.executable).resolve(), interpreter)
    scripts, old = folder / "bin", Path(sys.prefix) / "bin"
    scripts.mkdir()
    (folder / "pyvenv.cfg").write_text(f"home = {interpreter.parent}\ninclude-system-site-packages = false\n")
    packages = Path("lib") / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (folder / packages).parent.mkdir(parents=True)
    (folder / packages).symlink_to(Path(sys.prefix) / packages)
    for name in ("python", "python3", interpreter.name):
        (scripts / name).symlink_to(interpreter)
    for script in old.iterdir():
        if script.is_file() and not script.is_symlink() and script.stat().st_mode & stat.S_IXUSR:
            copy = scripts / script.name
            content = script.read_bytes()
            # Scripts name their interpreter in the first line; compiled programs are copied as they are.
            copy.write_bytes(content.replace(bytes(old), bytes(scripts)) if content.startswith(b"#!") else content)
            copy.chmod(0o755)
    return scripts / "python"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
