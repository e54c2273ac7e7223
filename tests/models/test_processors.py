"""What is solved has one answer: the same labels and probabilities on any processor and any number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow

# Their kernels of linear algebra add in other orders. NumPy's and the C library's own are chosen likewise.
PLAIN = {"OMP_NUM_THREADS": "1"}
PROCESSORS = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2"},
    "Nehalem": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "ATEN_CPU_CAPABILITY": "default",
        "NUMBA_CPU_NAME": "generic",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA",
        "OMP_NUM_THREADS": "2",
    },
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Probabilities by processor and recipe."""
    folder, running = tmp_path_factory.mktemp("processors"), {}
    for name, variables in {"plain": {}, **PROCESSORS}.items():
        command = [sys.executable, "-m", "tests.models.fit_recipes", folder / f"{name}.npz"]
        running[name] = subprocess.Popen(command, env=os.environ | PLAIN | variables, stderr=subprocess.PIPE, text=True)
    for name, process in running.items():
        _, error = process.communicate()
        assert process.returncode == 0, f"{name}: {error}"
    return {name: dict(np.load(folder / f"{name}.npz")) for name in running}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_probabilities_and_labels_do_not_depend_on_the_processor(fitted, processor):
    for name, expected in fitted["plain"].items():
        found = fitted[processor][name]
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5, err_msg=name)
        if not name.startswith("values"):
            np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1), err_msg=name)
            np.testing.assert_array_equal(found > 0.5, expected > 0.5, err_msg=name)
