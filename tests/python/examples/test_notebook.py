"""examples/notebook.ipynb, executed by a real kernel: what its cells print and show."""

import os
import signal

import pytest

import ranks

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
for needed in ("ipykernel", "torch", "sklearn", "cloudpickle"):
    pytest.importorskip(needed)

NOTEBOOK = ranks.ROOT / "examples" / "notebook.ipynb"


def streamed(cell, name):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == name)


def code_cell(notebook, word):
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and word in cell.source]
    return cell


@pytest.fixture
def kernel_environment(monkeypatch):
    """The kernel is a child of this process."""
    for name, value in ranks.environment(RUNJOB_BIN=str(ranks.LAUNCHER)).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def executed(kernel_environment):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=ranks.TIMEOUT_SECONDS, kernel_name="python3").execute(cwd=os.sep)
    return notebook


def test_the_cells_show_output_results_and_a_remote_traceback(executed):
    greeting = code_cell(executed, "def greet")
    assert sorted(streamed(greeting, "stdout").splitlines()) == [
        f"[{rank}]<stdout>:hello from rank {rank} of 2" for rank in range(2)
    ]
    (result,) = [output for output in greeting.outputs if output.output_type == "execute_result"]
    assert result.data["text/plain"] == "[0, 10]"

    training = streamed(code_cell(executed, "def train"), "stdout")
    assert [line.partition(" loss ")[0] for line in training.splitlines()] == [
        f"[0]<stdout>:epoch {epoch}:" for epoch in range(1, 11)
    ]
    accuracy, _, same = streamed(code_cell(executed, "accuracies"), "stdout").partition(", the same weights on both ranks: ")
    assert float(accuracy.removeprefix("test accuracy ")) > 0.9 and same == "True\n"

    failure = streamed(code_cell(executed, "def fail"), "stdout")
    assert failure.startswith("rank 1 on localhost failed: ValueError('a sample without a label')\nTraceback")
    assert 'raise ValueError("a sample without a label")' in failure


def test_an_exception_that_is_not_caught_ends_the_cell_with_it(kernel_environment):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import runjob\nrunjob.run(lambda: 1 / 0, np=1)")])
    with pytest.raises(nbclient.exceptions.CellExecutionError):
        nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (error,) = [output for output in notebook.cells[0].outputs if output.output_type == "error"]
    assert error.ename == "RankError"
    assert error.evalue.startswith("rank 0 on localhost raised ZeroDivisionError: division by zero\n\nThe traceback of rank 0:\n")


def test_interrupting_the_kernel_ends_the_job(kernel_environment):
    code = (
        "import runjob, signal\n"
        "def wait():\n"
        "    print('ready')\n"
        "    signal.pause()\n"
        "try:\n"
        "    runjob.run(wait, np=1)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3")
    process_message = client.process_message

    def interrupt_when_ready(message, *arguments, **options):
        if "ready" in str(message["content"].get("text", "")):
            os.killpg(os.getpgid(client.km.provisioner.pid), signal.SIGINT)  # as the button does
        return process_message(message, *arguments, **options)

    client.process_message = interrupt_when_ready
    client.execute()
    assert streamed(notebook.cells[0], "stdout") == "[0]<stdout>:ready\ninterrupted\n"
