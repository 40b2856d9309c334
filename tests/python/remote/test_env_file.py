"""--env-file: variables of the ranks that are on no command line, and files that another user may change."""

import pytest
from remote_jobs import Running, python, run
from testbed import HOME, Testbed

FILE, SECRET = f"{HOME}/job.env", "s3cret value=of a 'file'"
LINES = f"# of this test\nTOKEN={SECRET}\nFIRST=file\nHERE\n"
SHOW = """import os, socket, time
print(socket.gethostname(), [os.environ.get(n) for n in ('TOKEN', 'FIRST', 'HERE')])
time.sleep(600)"""
COMMAND_LINES = ["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\000' ' '"]


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2) as bed:
        yield bed


def test_variables_of_a_file_reach_every_rank_and_no_command_line(bed):
    bed.head.write(FILE, LINES, mode=0o600)
    options = ["-H", "s1,s2", "-x", "FIRST=option", "--env-file", "job.env"]
    with Running(bed, *options, *python(SHOW), cwd=HOME, variables={"HERE": "taken along"}) as job:
        lines = sorted(line.partition("<stdout>:")[2].strip() for line in job.wait_for_lines(2))
        shown = "".join(host.run(COMMAND_LINES, user="root", check=True).stdout for host in (bed.head, *bed.hosts))
    assert lines == [f"{host} {[SECRET, 'option', 'taken along']}" for host in ("s1", "s2")]
    assert (SECRET in shown, "FIRST=option" in shown) == (False, True)


def test_a_file_that_another_user_may_change_is_refused(bed):
    bed.head.write(FILE, LINES, mode=0o602)
    start = f"runjob: error: --env-file: bad owner or permissions on {FILE}: "
    done = run(bed, "-H", "s1", "--env-file", FILE, "true")
    assert (done.returncode, done.stderr) == (2, f"{start}others may write to it; chmod go-w {FILE}\n")
    bed.head.run(["chown", "65534", FILE], user="root", check=True)
    bed.head.run(["chmod", "0644", FILE], user="root", check=True)
    done = run(bed, "-H", "s1", "--env-file", FILE, "true")
    assert (done.returncode, done.stderr) == (2, f"{start}it belongs to user 65534; make a copy of your own: cp {FILE} COPY\n")
    bed.head.run(["rm", FILE], user="root", check=True)


def test_a_file_that_others_may_read_gets_a_warning_and_a_wrong_line_shows_no_value(bed):
    bed.head.write(FILE, LINES, mode=0o640)
    done = run(bed, "-H", "s1", "--env-file", FILE, "true", variables={"HERE": ""})
    assert (done.returncode, done.stderr) == (0, f"runjob: warning: --env-file: others may read {FILE}; if it has secrets, chmod go-r {FILE}\n")
    bed.head.write(FILE, "A=1\nexport TOKEN=s3cret\n", mode=0o600)
    done = run(bed, "-H", "s1", "--env-file", FILE, "true")
    assert done.returncode == 2
    assert done.stderr.startswith(f"runjob: error: {FILE}: line 2: this is neither NAME=VALUE nor NAME") and "s3cret" not in done.stderr
