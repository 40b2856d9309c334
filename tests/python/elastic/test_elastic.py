"""elastic.run() with real processes. The launcher is a stand-in: see scripted_rendezvous.py."""

import pathlib
import subprocess
import sys

import pytest
import ranks
import scripted_rendezvous

LIMIT_SECONDS = 60


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_survivors_of_a_lost_rank_go_on_from_their_commits(tmp_path, lost):
    rendezvous = scripted_rendezvous.Rendezvous(tmp_path / "socket", 3)
    place = {"RUNJOB_RENDEZVOUS": f"unix:{tmp_path}/socket", "RUNJOB_ELASTIC": "1"}
    script = pathlib.Path(__file__).with_name("training.py")
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(lost)],
            env=ranks.environment(RUNJOB_RANK=str(number), RUNJOB_PROCESS_NUMBER=str(number), **place),
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    try:
        assert processes[lost].wait(LIMIT_SECONDS) == -9
        # The lost process may have been killed before its thread asked. The others cannot go on before lose().
        rendezvous.wait_until_entered({0, 1, 2} - {lost})
        rendezvous.lose(lost, f"rank {lost} on here was killed by signal 9")
        survivors = [each for number, each in enumerate(processes) if number != lost]
        lines = sorted(each.communicate(timeout=LIMIT_SECONDS)[0].strip() for each in survivors)
        assert [each.returncode for each in survivors] == [0, 0]
    finally:
        for each in processes:
            each.kill()
            each.wait()
        rendezvous.shutdown()
        rendezvous.server_close()
    # 7 steps of three ranks, then 13 of two; the commit of the seventh is what all have
    assert lines == [f"{rank} 2 20 {7 * 3 + 13 * 2} [2]" for rank in range(2)]
    assert rendezvous.commits == [7, 7] and rendezvous.reasons == []
